import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Reading frames")
struct ClipTests {
  /// Frame threads, as the player uses them, beside one thread. Damaged clips are read by one.
  private func threadCounts(_ clip: Clip) -> [Int] { clip.isSound ? [1, 2] : [1] }

  @Test(
    "All frames are those that ffmpeg decodes, in its order, by any number of threads", arguments: Clip.whole)
  func allFrames(clip: Clip) throws {
    let golden = try clip.golden()
    for threads in threadCounts(clip) {
      let reader = try makeReader(clip, threads: threads)
      let seen = try reader.rest()
      #expect(seen.map(\.md5) == golden.frames.map(\.md5))
      if clip.hasTimestamps {
        #expect(reader.stream.timeBase == golden.timeBase)
        #expect(seen.map(\.ticks) == golden.frames.map(\.ticks))
      }
      #expect(try reader.next() == nil)
      guard clip.isSound else { continue }
      #expect(seen.allSatisfy { !$0.isDamaged })
      #expect(reader.damagedCount == 0)
    }
  }

  @Test("The first frame is ffmpeg's first, and the second follows it", arguments: Clip.whole)
  func firstFrame(clip: Clip) throws {
    let golden = try clip.golden()
    for threads in threadCounts(clip) {
      let reader = try makeReader(clip, threads: threads)
      let first = try #require(try reader.first())
      #expect(first.md5 == golden.frames[0].md5)
      if clip.hasTimestamps { #expect(first.ticks == golden.frames[0].ticks) }
      #expect(reader.firstFrameEnd != nil)
      let rest = try reader.rest()
      #expect(rest.map(\.md5) == golden.frames.dropFirst().map(\.md5))
      if clip.hasTimestamps { #expect(rest.map(\.ticks) == golden.frames.dropFirst().map(\.ticks)) }
    }
  }

  @Test("Bytes that trickle in give the same first frame", arguments: Clip.sound, [1, 7, 1000])
  func chunks(clip: Clip, chunkByteCount: Int) throws {
    guard try clip.canBeReadForward() else { return }
    let golden = try clip.golden()
    let reader = try makeReader(clip.bytes(), clip.format, chunkByteCount: chunkByteCount, isSeekable: false)
    let first = try reader.first()
    #expect(first?.md5 == golden.frames[0].md5)
    #expect(try reader.next()?.md5 == golden.frames.dropFirst().first?.md5)
  }

  @Test(
    "The first frame needs no more than its own packet and what comes before it",
    arguments: [
      Clip("media/h264-faststart.mp4"), Clip("media/h264-fragmented.mp4"),
      Clip("media/h264-fragmented-sidx.mp4"),
      Clip("media/h264.ts"), Clip("media/h264-bframes.ts"), Clip("media/hevc.ts"), Clip("media/h264.mkv"),
      Clip("media/hevc-hvc1.mp4"),
    ])
  func firstFrameIsCheap(clip: Clip) throws {
    let bytes = try clip.bytes()
    let source = MemorySource(bytes, chunkByteCount: 500, isSeekable: false)
    var options = ClipReader.Options()
    options.isSeekable = false
    let reader = try ClipReader(
      source: source, format: clip.format, options: options, name: "test", logger: silentLogger)
    _ = try #require(try reader.first())
    let end = try #require(reader.firstFrameEnd)
    #expect(end > 1000)
    #expect(end < bytes.count / 2)
    // An AVIO buffer may be filled beyond it.
    #expect(source.reach < bytes.count)
  }

  @Test("What the stream is, is told")
  func facts() throws {
    let reader = try makeReader(Clip("media/h264-bframes.mp4"))
    _ = try reader.first()
    #expect(reader.stream.videoCodec == .h264)
    #expect(reader.stream.size == PixelSize(width: 192, height: 108))
    #expect(reader.decoder.opening?.entry == .idr)
    #expect(reader.decoder.frameRate == Rational(30, 1))
    #expect(reader.container.durationMicroseconds == 1_000_000)
    #expect(reader.decoder.facts.profileName == "High")
    let openGOP = try makeReader(Clip("media/hevc-open-gop-mid.ts"))
    _ = try openGOP.first()
    #expect(openGOP.decoder.opening?.entry == .openGOP)
    let main10 = try makeReader(Clip("media/hevc-main10.mp4"))
    _ = try main10.first()
    #expect(main10.decoder.facts.profileName == "Main 10")
  }

  @Test("The attached picture of a file is not its video")
  func coverArt() throws {
    let reader = try makeReader(Clip("media/h264-cover-art.mp4"))
    #expect(reader.stream.videoCodec == .h264)
    #expect(reader.container.streams.filter { $0.isAttachedFrame }.count == 1)
  }

  @Test("A seek goes to a key frame at or before a time")
  func seek() throws {
    let clip = Clip("media/h264-gops.mp4")
    let golden = try clip.golden().frames
    let reader = try makeReader(clip.bytes(), .mp4)
    // Key frames stand at frames 0, 12 and 24.
    for (target, expected) in [(30, 24), (24, 24), (23, 12), (1, 0), (13, 12)] {
      #expect(try reader.seek(toKeyFrameAtOrBefore: golden[target].ticks))
      let first = try #require(try target % 2 == 0 ? reader.first() : reader.next())
      #expect(first.md5 == golden[expected].md5, "frame \(target)")
      #expect(try reader.next()?.md5 == golden[expected + 1].md5, "frame \(target)")
    }
  }

  @Test(
    "What the source throws comes out as it is",
    arguments: [Clip("media/h264-fragmented.mp4"), Clip("media/h264.ts")])
  func sourceError(clip: Clip) throws {
    let bytes = try clip.bytes()
    let source = MemorySource(
      Array(bytes.prefix(bytes.count * 2 / 3)), chunkByteCount: 997, isSeekable: false)
    source.errorAtEnd = ReelError(.network, "the line is cut")
    var options = ClipReader.Options()
    options.isSeekable = false
    let reader = try ClipReader(
      source: source, format: clip.format, options: options, name: "test", logger: silentLogger)
    let golden = try clip.golden().frames.map(\.md5)
    var seen: [String] = []
    let error = #expect(throws: ReelError.self) {
      while let frame = try reader.next() { seen.append(frame.md5) }
    }
    #expect(error?.kind == .network)
    // Whatever came out before is sound.
    #expect(seen == Array(golden.prefix(seen.count)))
    #expect(!seen.isEmpty)
  }
}

@Suite("Damaged media")
struct DamagedMediaTests {
  @Test(
    "Damaged slices count, the sound frames do not",
    arguments: [Clip("bad/damaged-slices.mp4"), Clip("bad/damaged-slices.ts")])
  func damagedSlices(clip: Clip) throws {
    let sound = try Golden("h264-gops.mp4").frames
    let reader = try makeReader(clip)
    let seen = try reader.rest()
    #expect(seen.count == sound.count)
    let soundIndices = Array(0...12) + [15] + Array(24...35)
    for index in soundIndices {
      #expect(seen[index].md5 == sound[index].md5, "frame \(index)")
      #expect(!seen[index].isDamaged, "frame \(index)")
    }
    let damaged = seen.indices.filter { seen[$0].isDamaged }
    // Entropy-coded garbage that decodes without an error can't be told by anyone.
    #expect(!damaged.isEmpty)
    #expect(Set(damaged).isDisjoint(with: soundIndices))
    #expect(reader.damagedCount == damaged.count)
    for index in damaged { #expect(seen[index].md5 != sound[index].md5, "frame \(index)") }
  }

  @Test("A first frame that is damaged is shown and told")
  func damagedFirstFrame() throws {
    let reader = try makeReader(Clip("bad/damaged-first-frame.mp4"))
    let first = try #require(try reader.first())
    #expect(first.isDamaged)
    #expect(reader.damagedCount == 1)
  }

  @Test("A NAL length beyond the file loses one frame at the most")
  func damagedLengths() throws {
    let sound = try Golden("h264-gops.mp4").frames
    let reader = try makeReader(Clip("bad/damaged-lengths.mp4"))
    let seen = try reader.rest()
    #expect(seen.count >= sound.count - 1)
    #expect(Array(seen.suffix(12)).map(\.md5) == sound.suffix(12).map(\.md5))
    #expect(reader.rejectedPacketCount + reader.damagedCount > 0)
  }

  @Test("A frame whose reference is missing is not passed off as sound")
  func missingReference() throws {
    let sound = try Golden("h264-gops.mp4").frames.map(\.md5)
    let reader = try makeReader(Clip("bad/missing-reference.ts"))
    let seen = try reader.rest()
    for frame in seen where !sound.contains(frame.md5) {
      #expect(frame.isDamaged, "frame at \(frame.ticks ?? -1)")
    }
    #expect(reader.damagedCount > 0)
  }

  @Test("A file that is cut in its media gives the frames that are there, then says so")
  func cutInMedia() throws {
    let clip = Clip("bad/cut-in-mdat.mp4")
    let golden = try clip.golden().frames.map(\.md5)
    let reader = try makeReader(clip)
    #expect(try reader.first()?.md5 == golden[0])
    let seen = try [golden[0]] + reader.rest().map(\.md5)
    #expect(reader.container.isTruncated)
    #expect(seen.starts(with: golden.prefix(9)))
  }

  @Test("A stream that is joined late begins with its first whole frame")
  func joinedLate() throws {
    let clip = Clip("media/h264-joined-late.ts")
    let reader = try makeReader(clip)
    #expect(try reader.first()?.ticks == 171_000)
    #expect(reader.damagedCount == 0)
  }

  @Test(
    "A cut file gives what it has, and then ends or says why",
    arguments: [Clip("bad/cut-in-first-frame.mp4"), Clip("bad/cut-in-first-frame.ts")])
  func cutInFirstFrame(clip: Clip) throws {
    do {
      let reader = try makeReader(clip)
      if let first = try reader.first() { #expect(first.isDamaged) }
    } catch let error as ReelError {
      #expect(error.kind == .badMedia)
    }
  }

  @Test(
    "H.264 frames are cropped to a container's size if it is less than a macroblock smaller, as in ffmpeg",
    arguments: [
      ("container-rows.mp4", PixelSize(width: 192, height: 108)),
      ("container-rows.mkv", PixelSize(width: 192, height: 108)),
      ("container-columns.mp4", PixelSize(width: 182, height: 112)),
      ("container-macroblock.mp4", PixelSize(width: 192, height: 112)),
      ("container-cropped.mp4", PixelSize(width: 192, height: 104)),
      ("container-crop-left-top.mp4", PixelSize(width: 160, height: 90)),
      ("container-rows-hevc.mp4", PixelSize(width: 192, height: 112)),
    ])
  func containerSize(name: String, size: PixelSize) throws {
    let clip = Clip("media/\(name)")
    let golden = try clip.golden().frames
    for threads in [1, 2] {
      var options = ClipReader.Options()
      options.threads = threads
      let reader = try ClipReader(
        source: MemorySource(try clip.bytes()), format: clip.format, options: options, name: "test",
        logger: silentLogger)
      var md5s: [String] = []
      while let frame = try reader.nextFrame() {
        #expect(frame.size == size)
        md5s.append(try frame.md5())
      }
      #expect(md5s == golden.map(\.md5))
    }
  }
}
