import Logging
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// The sound of a clip with its golden file.
struct SoundClip: Sendable, Hashable, CustomTestStringConvertible {
  /// Below `media`, as `audio-aac.ts`.
  let name: String
  let codec: AudioCodec

  var testDescription: String { name }
  var clip: Clip { Clip("media/\(name)") }

  func golden() throws -> Golden { try Golden("\(name).sound") }

  static let all: [SoundClip] = [
    SoundClip(name: "audio-aac.mp4", codec: .aac),
    SoundClip(name: "audio-aac-fragmented.mp4", codec: .aac),
    SoundClip(name: "audio-aac-5.1.mp4", codec: .aac),
    SoundClip(name: "audio-aac.mkv", codec: .aac),
    SoundClip(name: "audio-aac.flv", codec: .aac),
    SoundClip(name: "audio-mp3.mp4", codec: .mp3),
    SoundClip(name: "audio-mp3.mkv", codec: .mp3),
    SoundClip(name: "audio-ac3.mp4", codec: .ac3),
    SoundClip(name: "audio-eac3.mp4", codec: .eac3),
    SoundClip(name: "audio-opus.mp4", codec: .opus),
    SoundClip(name: "audio-opus.mkv", codec: .opus),
    SoundClip(name: "audio-vorbis.mkv", codec: .vorbis),
    SoundClip(name: "audio-flac.mp4", codec: .flac),
    SoundClip(name: "audio-flac-24.mkv", codec: .flac),
    SoundClip(name: "audio-alac.mp4", codec: .alac),
    SoundClip(name: "audio-pcm.mov", codec: .pcm),
    SoundClip(name: "audio-pcm-24.mkv", codec: .pcm),
    SoundClip(name: "audio-pcm-float.mov", codec: .pcm),
  ]

  /// Transport streams: demuxed into PES packets.
  static let split: [SoundClip] = [
    SoundClip(name: "audio-aac.ts", codec: .aac),
    // The program map names MPEG audio without its layer.
    SoundClip(name: "audio-mp3.ts", codec: .mp3),
    SoundClip(name: "audio-mp2.ts", codec: .mp3),
    SoundClip(name: "audio-ac3.ts", codec: .ac3),
    SoundClip(name: "audio-eac3.ts", codec: .eac3),
    SoundClip(name: "audio-opus.ts", codec: .opus),
  ]
}

/// The packets of the audio stream of a clip, as the demuxer gives them, and the stream.
func soundPackets(_ clip: Clip) throws -> (StreamInfo, [Packet]) {
  let demuxer = try Demuxer(
    source: MemorySource(clip.bytes()), format: clip.format, name: clip.path, logger: silentLogger)
  let index = try #require(try demuxer.awaitStream { $0.kind == .audio }).index
  let stream = try demuxer.streamAtFirstPacket(index)
  var packets: [Packet] = []
  while let packet = try demuxer.nextPacket() {
    if packet.streamIndex == stream.index { packets.append(packet) }
  }
  return (stream, packets)
}

/// Audio frames out of PES packets.
func splitFrames(
  _ packets: [Packet], codec: AudioCodec, timeBase: Rational = Rational(1, 90000)
) throws -> [Packet] {
  let splitter = AudioFrameSplitter(codec: codec, streamIndex: 1, timeBase: timeBase)
  var frames: [Packet] = []
  for packet in packets {
    splitter.append(packet)
    while let frame = try splitter.next() { frames.append(frame) }
  }
  while let frame = try splitter.flush() { frames.append(frame) }
  return frames
}

/// Everything that a decoder makes of packets.
func decodeSound(_ stream: StreamInfo, _ packets: [Packet]) throws -> [PCMBuffer] {
  let decoder = try AudioDecoder(stream: stream, name: "test", logger: silentLogger)
  var buffers: [PCMBuffer] = []
  for packet in packets { buffers += try decoder.decode(packet) }
  return try buffers + decoder.drain()
}

/// A packet of bytes.
func makePacket(_ bytes: [UInt8], ticks: Int64? = nil, isCorrupt: Bool = false) throws -> Packet {
  let packet = try Packet()
  try packet.setBytes(copying: bytes[...], streamIndex: 1)
  packet.setTimestamps(
    presentationTicks: ticks, decodingTicks: ticks, isKey: true, isCorrupt: isCorrupt)
  return packet
}

extension Packet {
  var bytes: [UInt8] { withBytes { Array($0) } }
  var ticks: Int64? { presentationTicks }
}
