/// The stream types that MPEG-TS has for samples encrypted by SAMPLE-AES.
enum SampleAESStreamType {
  /// Maps the stream types of SAMPLE-AES to those of the same codecs in the clear (libavformat/mpegts.c,
  /// HLS_SAMPLE_ENC_types).
  static let clearTypes: [UInt8: UInt8] = [0xdb: 0x1b, 0xcf: 0x0f, 0xc1: 0x81, 0xc2: 0x87]
}
