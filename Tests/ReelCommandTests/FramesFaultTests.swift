import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("What bad input gets", .hangLimit)
struct FramesFaultTests {
  // MARK: Files

  @Test(
    "Files",
    arguments: [
      ("media/nowhere.mp4", Int32(66), "no such file"), ("media", 65, "directory"),
      ("bad/empty.mp4", 65, "empty"),
      ("bad/text.mp4", 65, "plain text"), ("bad/html.m3u8", 65, "HTML"),
      ("bad/html-segment.m3u8", 65, "HTML"),
      ("bad/missing-segment.m3u8", 66, "missing.ts"), ("bad/no-segments.m3u8", 65, "segments"),
      ("bad/not-xml.mpd", 65, ""), ("bad/unclosed.mpd", 65, "line 4"), ("bad/no-period.mpd", 65, "Period"),
      ("bad/entities.mpd", 65, "entities"), ("bad/loop.m3u8", 65, "multivariant"),
      ("bad/cut-in-moov.mp4", 65, ""), ("bad/cut-before-moov.mp4", 65, "moov"),
      ("bad/cut-in-first-frame.mp4", 65, ""), ("bad/audio-only.mp4", 65, "no video"),
      ("bad/audio-only.ts", 65, "no video"), ("bad/audio-only.mpd", 65, "no video"),
      ("bad/encrypted-cenc.mp4", 65, "encrypted"), ("bad/encrypted-cenc-fragmented.mp4", 65, "encrypted"),
      ("bad/encrypted.mpd", 65, "encrypted"), ("hls-sample-aes/index.m3u8", 65, "FairPlay"),
      ("bad/codec-png.mp4", 65, "png"), ("bad/codec-dirac.ts", 65, "dirac"),
      ("bad/codec-qtrle.mov", 65, "qtrle"),
      ("bad/size-65520-in-sps.mp4", 65, "65520x65520"), ("bad/size-16000-in-sps.mp4", 65, "16000x16000"),
      ("bad/size-void-in-sps.mp4", 65, ""),
    ])
  func files(path: String, status: Int32, words: String) async throws {
    let isInPlaylist =
      path.contains("-segment.m3u8") || path.hasPrefix("hls-") || path == "bad/encrypted.mpd"
    try await expectFailure(
      Fixtures.path(path), status: status, words: words, names: isInPlaylist ? Fixtures.folder.path : nil)
  }

  @Test("A stream without parameter sets: the error is what libavcodec says of the cause")
  func noParameterSets() async throws {
    let folder = try TemporaryFolder()
    var bytes = try Fixtures.bytes("media/h264.ts")
    for index in bytes.indices.dropLast(3)
    where bytes[index..<index + 3] == [0, 0, 1] && [0x65, 0x67, 0x68].contains(bytes[index + 3]) {
      // Filler data in place of parameter sets and IDR pictures.
      bytes[index + 3] = 0x6c
    }
    try folder.write(bytes, to: "a.ts")
    try await expectFailure(
      folder.path("a.ts"), status: 65, words: "no frame could be decoded: non-existing PPS 0 referenced")
  }

  @Test("Cover art is named as such, not as video")
  func coverArt() async throws {
    let folder = try TemporaryFolder()
    var data = try Data(contentsOf: URL(filePath: Fixtures.path("media/h264-cover-art.mp4")))
    // Without the video track.
    data.replaceSubrange(try #require(data.firstRange(of: Data("trak".utf8))), with: Data("free".utf8))
    try data.write(to: folder.url.appending(path: "a.mp4"))
    try await expectFailure(
      folder.path("a.mp4"), status: 65, words: "no video in the media, only audio (aac), cover art (mjpeg)")
  }

  @Test("User name and password of a URL are sent, and left out of errors")
  func userInformation() async throws {
    try await withOrigin { origin in
      let clean = origin.url("media/nowhere.mp4").absoluteString
      let url = clean.replacing("http://", with: "http://user:secret@")
      let result = try await Command.run("frames", url, "--json", status: 69)
      #expect(result.errorText == "reel: \(clean): 404 Not Found\n")
      let line = try #require(result.outputLines.first)
      let record = try jsonObject(line)
      #expect(record["source"] as? String == clean)
      let error = try #require(record["error"] as? [String: Any])
      #expect(error["location"] as? String == clean)
      #expect(error["message"] as? String == "\(clean): 404 Not Found")
      #expect(origin.requestLog.first?.header("Authorization") == "Basic dXNlcjpzZWNyZXQ=")
    }
  }

  @Test("Absurd sizes are named however many frames are wanted", arguments: ["65520", "16000"])
  func absurdSizes(size: String) async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("bad/size-\(size)-in-sps.mp4")
    for count in ["0", "1", "3"] {
      let result = try await Command.run("frames", source, "--count", count, "-o", folder.path, status: 65)
      expectErrorLine(result, names: source, words: "\(size)x\(size)")
    }
    #expect(folder.names().isEmpty)
  }

  @Test(
    "Wrong sizes in a header are made good",
    arguments: ["bad/size-65535-in-header.mp4", "bad/size-zero-in-header.mp4"])
  func headerSizes(path: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run("frames", Fixtures.path(path), "-o", folder.path, status: 0)
    #expect(result.outputText.hasSuffix("\t96x64\n"))
  }

  @Test("A file that is cut in its media gives the frames that are there")
  func cutInMedia() async throws {
    let folder = try TemporaryFolder()
    try await Command.run("frames", Fixtures.path("bad/cut-in-mdat.mp4"), "-o", folder.path, status: 0)
    let all = try await Command.run(
      "frames", Fixtures.path("bad/cut-in-mdat.mp4"), "--count", "0", "--md5", "-o", folder.path + "/all",
      status: 65)
    expectErrorLine(all, names: "cut-in-mdat.mp4", words: "cut off")
    let golden = try Fixtures.golden("h264-faststart.mp4").prefix(9)
    #expect(all.outputLines.prefix(9).map { $0.suffix(32) } == golden.map { $0[...] })
  }

  @Test(
    "Damage in the middle: decoding goes on, and the damage is told",
    arguments: ["bad/damaged-slices.mp4", "bad/damaged-slices.ts"])
  func damage(path: String) async throws {
    let folder = try TemporaryFolder()
    let text = try await Command.run(
      "frames", Fixtures.path(path), "--count", "0", "-o", folder.path, status: 0)
    #expect(folder.names().count == 36)
    #expect(text.errorText.isEmpty)
    let lines = text.outputLines.filter { $0.hasSuffix("\tdamaged") }
    #expect(!lines.isEmpty)
    let json = try await Command.run(
      "frames", Fixtures.path(path), "--count", "0", "--json", "-o", folder.path + "/json")
    let record = try jsonObject(json.outputText)
    #expect(record["damaged"] as? Int == lines.count)
  }

  @Test("FFmpeg's own lines do not come out, but on demand")
  func logs() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("bad/damaged-lengths.mp4")
    let plain = try await Command.run("frames", source, "--count", "0", "-o", folder.path, status: 0)
    #expect(plain.errorLines == ["reel: warning: \(source): 1 packet can't be decoded"])
    let verbose = try await Command.run(
      "frames", source, "--count", "0", "--verbose", "-o", folder.path + "/verbose")
    #expect(verbose.errorText.contains("Invalid NAL unit size"))
    #expect(verbose.errorText.contains("damaged-lengths.mp4"))
  }

  // MARK: Servers

  @Test(
    "Answers that are no success",
    arguments: [
      ("status:404", "404"), ("status:403", "403"), ("status:410", "410"), ("status:500", "500"),
      ("status:503", "503"), ("close:100", ""), ("reset:0", ""), ("loop", "redirect"),
      ("redirect:file:///etc/hostname", ""), ("redirects:11", "redirect"), ("redirect:http://", ""),
    ])
  func answers(fault: String, words: String) async throws {
    try await withSource("media/h264.ts", faults: "h264.ts=\(fault)") { source in
      try await expectFailure(source, status: 69, words: words)
    }
  }

  @Test("A body that ends before what was stated", arguments: ["length:+1000000", "close:20000"])
  func shortBody(fault: String) async throws {
    let folder = try TemporaryFolder()
    try await withSource("media/h264.ts", faults: "h264.ts=\(fault)") { source in
      let result = try await Command.run(
        "frames", source, "--count", "0", "--retries", "0", "-o", folder.path, "--quiet", status: 69)
      expectErrorLine(result, names: source, words: "")
      // What was there before stays, and is whole.
      #expect(folder.names().count >= 10)
      #expect(try Set(folder.names().map { try folder.bytes($0).count }).count == 1)
    }
  }

  @Test("A body longer than was stated is read to what was stated")
  func longBody() async throws {
    let folder = try TemporaryFolder()
    try await withSource("media/h264.ts", faults: "h264.ts=length:-188") { source in
      let result = try await Command.run(
        "frames", source, "--count", "0", "--retries", "0", "-o", folder.path)
      #expect(!result.wasSignalled)
      #expect([0, 65, 69].contains(result.status), "\(result.errorText)")
      #expect(!folder.names().contains { $0.contains("part") })
    }
  }

  @Test(
    "Servers that keep still", arguments: ["h264.ts=silence", "h264.ts=stall:1500", "h264.ts=stall:0"])
  func stillness(fault: String) async throws {
    try await withSource("media/h264.ts", faults: fault) { source in
      try await expectFailure(
        source, status: 69, words: "1 s", options: ["--timeout", "1"], isBesideSound: false)
    }
  }

  @Test("A stall in the middle leaves the frames before it")
  func laterStall() async throws {
    let folder = try TemporaryFolder()
    try await withSource("hls-ts/master.m3u8", faults: "segment-1.ts=stall:2000") { source in
      let result = try await Command.run(
        "frames", source, "--count", "0", "--timeout", "20", "-o", folder.path, "--quiet", status: 69)
      #expect(result.errorLines.count == 1)
      #expect(folder.names().count >= 25)
      #expect(folder.names().allSatisfy { $0.hasPrefix("hls-ts-0") && $0.hasSuffix(".ppm") })
      let sizes = try Set(folder.names().map { try folder.bytes($0).count })
      #expect(sizes.count == 1)
    }
  }

  @Test("A certificate file that can't be read is a mistake in the arguments")
  func noCertificateFile() async throws {
    let named = try await Command.run(
      ["frames", "https://localhost/a.mp4", "--cacert", "/nowhere.pem"], status: 64)
    #expect(named.errorText.contains("/nowhere.pem: the certificate file can't be read"))
  }

  @Test("A manifest from the network can't name local files")
  func localFile() async throws {
    try await withSource("bad/local-file.m3u8") { source in
      try await expectFailure(source, status: 65, words: "local file")
    }
  }

  @Test("Segments that are not there, or something else")
  func segments() async throws {
    try await withOrigin { origin in
      try await expectFailure(
        origin.url("bad/missing-segment.m3u8").absoluteString, status: 69, words: "404",
        names: origin.url("bad/missing.ts").absoluteString)
      try await expectFailure(
        origin.url("bad/html-segment.m3u8").absoluteString, status: 65, words: "HTML",
        names: origin.url("bad/html.m3u8").absoluteString)
    }
  }

  @Test("One slow source holds up no other")
  func slowSource() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin("hevc.ts=silence") { origin in
      let command = try Command([
        "frames", origin.url("media/hevc.ts").absoluteString, goodSource, "-o", folder.path, "--timeout",
        "3600",
      ])
      // The sound one is there while the other still waits.
      try await until { folder.names().contains("h264-faststart-000001.ppm") || !command.isRunning }
      #expect(command.isRunning)
      command.interrupt()
      #expect(try await command.result().status == 130)
      #expect(folder.names() == ["h264-faststart-000001.ppm"])
    }
  }

  // MARK: Outputs

  @Test("An output folder below a file")
  func folderBelowFile() async throws {
    let folder = try TemporaryFolder()
    try folder.write([1], to: "file")
    let result = try await Command.run("frames", goodSource, "-o", "\(folder.path)/file/out", status: 73)
    expectErrorLine(result, names: "\(folder.path)/file/out", words: "")
    let file = try await Command.run("frames", goodSource, "-o", "\(folder.path)/file", status: 73)
    expectErrorLine(file, names: "\(folder.path)/file", words: "not a folder")
    #expect(folder.names() == ["file"])
  }

  @Test("A folder that is written to in vain: its file's name is taken by a folder")
  func nameTaken() async throws {
    let folder = try TemporaryFolder()
    let taken = folder.url.appending(path: "h264-faststart-000001.ppm")
    try FileManager.default.createDirectory(at: taken, withIntermediateDirectories: true)
    let result = try await Command.run("frames", goodSource, "-o", folder.path, status: 73)
    expectErrorLine(result, names: taken.path, words: "")
    #expect(folder.names() == ["h264-faststart-000001.ppm"])
  }

  // ThreadSanitizer's own runtime does not survive the limit.
  @Test(
    "A full disk", .enabled(if: ProcessInfo.processInfo.environment["REEL_SANITIZER"] == nil),
    arguments: ["ppm", "png", "y4m"])
  func fullDisk(format: String) async throws {
    let folder = try TemporaryFolder()
    // A limit on the size of files, its signal ignored, is as good as a disk that is full. In blocks of 512 bytes.
    let result = try await Command.run(
      "frames", goodSource, "--format", format, "--count", "3", "-o", folder.path,
      shell: "trap '' XFSZ; ulimit -f 8; exec \"$@\"")
    #expect(!result.wasSignalled)
    #expect(result.status == 74, "\(result.errorText)")
    expectErrorLine(result, names: folder.path, words: "")
    #expect(folder.names().isEmpty)
  }

  @Test("Standard input that can't be kept is no fault of a server")
  func noTemporaryFile() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "frames", "-", "-o", folder.path, input: try Fixtures.bytes("media/h264-moov-last.mp4"),
      shell: "TMPDIR=/dev/null/none exec \"$@\"", status: 73)
    #expect(result.errorText.contains("temporary file"), "\(result.errorText)")
    #expect(!result.errorText.contains("server"), "\(result.errorText)")
  }

  @Test("A device that is full")
  func fullDevice() async throws {
    guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
    let result = try await Command.run(
      "frames", goodSource, "-o", "-", shell: "exec \"$@\" > /dev/full", status: 74)
    expectErrorLine(result, names: "standard output", words: "space")
    // The same for several sources, whose records can't be printed: one line, not one for each.
    let folder = try TemporaryFolder()
    let several = try await Command.run(
      "frames", goodSource, Fixtures.path("hls-ts/master.m3u8"), "--json", "-o", folder.path,
      shell: "exec \"$@\" > /dev/full", status: 74)
    expectErrorLine(several, names: "standard output", words: "space")
  }

  @Test("A reader that has closed its end", arguments: ["ppm", "y4m"])
  func closedPipe(format: String) async throws {
    let result = try await Command.run(
      "frames", Fixtures.path("media/h264-gops.mp4"), "-o", "-", "--count", "0", "--format", format,
      closesOutputAfter: 1000)
    #expect(!result.wasSignalled)
    #expect(result.status == 74)
    #expect(result.errorLines.filter { $0.hasPrefix("reel: ") }.count == 1)
    #expect(result.errorText.contains("standard output"))
  }

  @Test("A reader of the list that has closed its end")
  func closedList() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "frames", Fixtures.path("media/h264-gops.mp4"), "-o", folder.path, "--count", "0", closesOutputAfter: 0)
    #expect(!result.wasSignalled)
    #expect(result.status == 74)
    expectErrorLine(result, names: "standard output", words: "")
    #expect(folder.names().allSatisfy { $0.hasSuffix(".ppm") })
  }

  // MARK: Ctrl-C

  @Test(
    "Ctrl-C ends at once and leaves nothing half done",
    arguments: [
      ("master.m3u8=silence", "ppm"), ("segment-0.ts=silence", "ppm"), ("segment-0.ts=stall:900", "ppm"),
      ("segment-1.ts=stall:3000", "ppm"), ("segment-1.ts=stall:3000", "y4m"),
    ])
  func interrupt(fault: String, format: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await interrupted(at: fault) { source in
      ["frames", source, "--count", "0", "--format", format, "-o", folder.path, "--quiet"]
    }
    #expect(result.status == 130, "\(result.errorText)")
    #expect(!result.wasSignalled)
    #expect(folder.names().allSatisfy { $0.hasSuffix(".\(format)") && !$0.hasPrefix(".") })
    let sizes = try Set(folder.names().map { try folder.bytes($0).count })
    #expect(sizes.count <= 1)
    #expect(result.errorLines.count <= 1)
    // A Y4M file holds whole frames.
    if format == "y4m", let bytes = try? folder.bytes("hls-ts.y4m"), let end = bytes.firstIndex(of: 10) {
      #expect((bytes.count - end - 1) % (6 + 256 * 144 * 3 / 2) == 0)
    }
  }
}
