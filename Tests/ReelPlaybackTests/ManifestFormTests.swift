import Foundation
import ReelCore
import ReelManifest
import ReelReading
import ReelTestSupport
import Testing

@testable import ReelSources

/// Manifests in forms that few writers use play as others do.
@Suite("Forms of manifests")
struct ManifestFormTests {
  /// All frames of a fixture whose manifest is replaced.
  private func frames(_ path: String, manifest: [UInt8], name: String = "manifest.mpd") async throws
    -> [String]
  {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix(name) ? .bytes(manifest) : .none
    }
    let source = try MediaSource(argument: "http://fixtures.test/\(path)")
    return try await extract(.count(0), from: source, fetcher: fetcher).frames.map(\.md5)
  }

  private func text(_ path: String) throws -> String {
    String(decoding: try Fixtures.bytes(path), as: UTF8.self)
  }

  @Test(
    "An indexRange without an end is searched for",
    arguments: [
      ("766", "0-765"), ("766-", "0-765"), ("841", "0-765"), ("0", "0-765"), ("766", "0"), ("766", "765"),
      ("766", "0-"),
      ("766-841", "0"), ("766-841", "765"),
    ])
  func openIndexRange(index: String, initialization: String) async throws {
    let path = "dash-ondemand/manifest.mpd"
    let manifest = try text(path).replacing("\"766-841\"", with: "\"\(index)\"").replacing(
      "\"0-765\"", with: "\"\(initialization)\"")
    let expected = try Golden("dash-number-1").frames.map(\.md5)
    #expect(try await frames(path, manifest: Array(manifest.utf8)) == expected)
  }

  @Test("A mediaRange without an end ends before the next one", arguments: ["", "-"], ["0-797", "0", "797"])
  func openMediaRange(hyphen: String, initialization: String) async throws {
    let path = "dash-segmentlist/manifest.mpd"
    let manifest = try text(path).replacing(/mediaRange="([0-9]+)-[0-9]+"/) {
      "mediaRange=\"\($0.output.1)\(hyphen)\""
    }
    .replacing("range=\"0-797\"", with: "range=\"\(initialization)\"")
    let expected = try Golden("dash-number-1").frames.map(\.md5)
    #expect(try await frames(path, manifest: Array(manifest.utf8)) == expected)
  }

  @Test("An MPD may be in UTF-16, with and without its mark", arguments: [true, false], [true, false])
  func utf16(isBigEndian: Bool, hasMark: Bool) async throws {
    let path = "dash-number/manifest.mpd"
    let text = try text(path).replacing("encoding=\"utf-8\"", with: "encoding=\"UTF-16\"")
    let manifest = ((hasMark ? [0xfeff] : []) + Array(text.utf16)).flatMap { unit -> [UInt8] in
      let (high, low) = (UInt8(unit >> 8), UInt8(unit & 0xff))
      return isBigEndian ? [high, low] : [low, high]
    }
    let expected = try Golden("dash-number-1").frames.map(\.md5)
    #expect(try await frames(path, manifest: manifest) == expected)
  }

  @Test("Playlists may begin with the mark of UTF-8", arguments: ["master.m3u8", "high/index.m3u8"])
  func byteOrderMark(name: String) async throws {
    let manifest = [0xef, 0xbb, 0xbf] + (try Fixtures.bytes("hls-ts/\(name)"))
    let expected = try Golden("hls-ts-high").frames.map(\.md5)
    #expect(try await frames("hls-ts/\(name)", manifest: manifest, name: name) == expected)
    #expect(try await frames("hls-ts/master.m3u8", manifest: manifest, name: name) == expected)
  }
}
