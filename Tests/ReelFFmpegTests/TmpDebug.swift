import Foundation
import Logging
import ReelCore
import Testing
@testable import ReelFFmpeg

@Test func tmpDebug() throws {
  for p in ["media/hevc-open-gop-mid.ts", "media/hevc-radl-mid.ts", "media/hevc.ts"] {
    let clip = Clip(p)
    let d = try Demuxer(source: MemorySource(clip.bytes()), format: .mpegTS, name: "t", logger: silentLogger)
    for _ in 0..<4 {
      guard let b = try d.nextPacket() else { break }
      let (h, t) = b.withBytes { (Array($0.prefix(10)), Array($0.suffix(10))) }
      print("TMP", p, b.streamIndex, b.presentationTicks as Any, b.decodingTicks as Any, b.byteCount, h, t)
    }
  }
}
