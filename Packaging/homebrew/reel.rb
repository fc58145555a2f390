# A formula for Homebrew. Not tested: `brew install --build-from-source ./Packaging/homebrew/reel.rb` needs the URL and
# the SHA-256 hash of a release in place of those below.
class Reel < Formula
  desc "Headless media player pool over FFmpeg"
  homepage "https://example.com/reel"
  url "https://example.com/reel/archive/0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on xcode: ["26.0", :build]
  depends_on "pkgconf" => :build
  depends_on "ffmpeg"
  depends_on "jemalloc"
  depends_on macos: :sequoia

  def install
    system "swift", "build", "--disable-sandbox", "-c", "release", "--product", "reel"
    bin.install ".build/release/reel"
    system bin/"reel", "--generate-manual-pages", "man"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"reel", "--generate-completion-script")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/reel --version")
    assert_match "no such file", shell_output("#{bin}/reel probe missing.mp4 2>&1", 66)
  end
end
