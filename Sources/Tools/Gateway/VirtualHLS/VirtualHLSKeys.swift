import Foundation
import ReelCore
import ReelManifest

extension SegmentEncryption {
  /// Describes the protection of a rung in the terms of HLS: the method of its scheme (draft-pantos-hls-rfc8216bis
  /// §4.4.4.4), and the key of each DRM system whose data the MPD states.
  init(_ protection: ContentProtection) throws(VirtualHLSPlanner.Refusal) {
    guard let scheme = protection.commonEncryption else {
      let names = protection.schemes.joined(separator: ", ")
      throw VirtualHLSPlanner.Refusal.encrypted("encrypted (\(names)): the MPD does not state the scheme")
    }
    guard let method = Self.methods[scheme] else {
      throw VirtualHLSPlanner.Refusal.encrypted(
        "encrypted: HLS has no method for the scheme '\(scheme.excerpt)'")
    }
    let keyID = protection.keyIDs.count == 1 ? protection.keyIDs.first : nil
    let keys = protection.systems.compactMap { Key($0, method: method, keyID: keyID) }
    guard !keys.isEmpty else {
      let named =
        protection.systemNames.isEmpty ? "no DRM system" : protection.systemNames.joined(separator: ", ")
      throw VirtualHLSPlanner.Refusal.encrypted(
        "encrypted (\(scheme)): the MPD states no data by which a player of HLS gets the key (\(named))")
    }
    self.init(
      method: method, keyURL: nil, keyFormat: nil, initializationVector: nil, systems: protection.systemNames,
      systemKeys: keys)
  }

  /// The method and the DRM systems from which a player can get the key; nil if the key is given by its URL.
  var note: String? {
    guard !systems.isEmpty else { return nil }
    let names = systemKeys.map { ProtectionSystem(keyFormat: $0.keyFormat)?.name ?? $0.keyFormat.excerpt }
    let others = systems.filter { !names.contains($0) }
    return "encrypted (\(systemKeys.first?.method ?? method)):"
      + " a player needs a license from \(names.joined(separator: " or "))"
      + (others.isEmpty ? "" : "; HLS can't name the key for \(others.joined(separator: ", "))")
  }

  // MARK: - Private

  /// The METHOD of a scheme of Common Encryption.
  private static let methods = ["cenc": "SAMPLE-AES-CTR", "cbcs": "SAMPLE-AES"]
}

extension SegmentEncryption.Key {
  /// The EXT-X-KEY.
  var text: String {
    var attributes = AttributeListWriter(tag: "#EXT-X-KEY:")
    attributes.add("METHOD", VirtualHLSPlanner.keyMethods.contains(method) ? method : "SAMPLE-AES")
    if !uri.isEmpty { attributes.add("URI", quoted: uri) }
    if let keyID { attributes.add("KEYID", "0x\(keyID)") }
    if let initializationVector { attributes.add("IV", "0x\(initializationVector.hexadecimal)") }
    if keyFormat != "identity" { attributes.add("KEYFORMAT", quoted: keyFormat) }
    if let keyFormatVersions { attributes.add("KEYFORMATVERSIONS", quoted: keyFormatVersions) }
    return attributes.text
  }

  /// Returns the key of a DRM system in the form that its players expect; nil if HLS has no form for it, or the MPD
  /// does not state the data.
  fileprivate init?(_ system: ContentProtection.System, method: String, keyID: KeyID?) {
    switch system.system {
    case .widevine, .chinaDRM:
      guard let box = system.box(for: keyID), let urn = system.urn else { return nil }
      self.init(
        method: method, uri: "data:text/plain;base64,\(Data(box).base64EncodedString())", keyFormat: urn,
        keyFormatVersions: "1", keyID: keyID)
    case .playReady:
      guard let object = system.playReadyObject ?? system.box(for: nil).flatMap(Self.content) else {
        return nil
      }
      self.init(
        method: method, uri: "data:text/plain;charset=UTF-16;base64,\(Data(object).base64EncodedString())",
        keyFormat: "com.microsoft.playready", keyFormatVersions: "1")
    case .fairPlay:
      // Its players decrypt nothing but cbcs.
      guard method == "SAMPLE-AES", let uri = system.keyURI else { return nil }
      self.init(
        method: method, uri: uri, keyFormat: "com.apple.streamingkeydelivery", keyFormatVersions: "1")
    case .clearKey, .marlin, .primetime, .nagra, nil: return nil
    }
  }

  /// Returns the data in a `pssh` box (ISO/IEC 23001-7 §8.1); nil if there is none.
  private static func content(of box: [UInt8]) -> [UInt8]? {
    var fields = BigEndianReader(box[...])
    guard fields.bytes(8) != nil, let version = fields.number(1), fields.bytes(3 + 16) != nil else {
      return nil
    }
    if version > 0 {
      guard let count = fields.number(4), fields.bytes(Int(count) * 16) != nil else { return nil }
    }
    guard let size = fields.number(4), size > 0 else { return nil }
    return fields.bytes(Int(size)).map { Array($0) }
  }
}

extension ContentProtection.System {
  /// The URN of the system; nil for an id that is none.
  fileprivate var urn: String? {
    guard let bytes = KeyID(id)?.bytes else { return nil }
    let parts = [bytes[0..<4], bytes[4..<6], bytes[6..<8], bytes[8..<10], bytes[10..<16]]
    return "urn:uuid:" + parts.map(\.hexadecimal).joined(separator: "-")
  }

  /// Returns the `pssh` box that names a key ID or, if none does, the first.
  fileprivate func box(for keyID: KeyID?) -> [UInt8]? {
    guard let keyID, systemData.count > 1 else { return systemData.first }
    return systemData.first { $0.firstRange(of: keyID.bytes) != nil } ?? systemData.first
  }
}

extension SegmentList {
  /// The same list, for media whose samples are decrypted on the way.
  var withoutSampleEncryption: SegmentList { encrypted { $0?.encryptsSamples == true ? nil : $0 } }
}

extension VirtualHLS.Track {
  /// Returns the ways in which a player gets the key of a segment or of its initialization segment.
  ///
  /// - Parameter reference: Returns the URI of a key that is a resource.
  func keys(
    _ encryption: SegmentEncryption, reference: (VirtualHLS.Resource) -> String
  ) -> [SegmentEncryption.Key] {
    guard encryption.systems.isEmpty else { return encryption.systemKeys }
    let uri = key(encryption).map(reference)
    let identity = SegmentEncryption.Key(
      method: encryption.method,
      uri: uri ?? encryption.keyURL?.absoluteString.withoutUserInformation ?? "", keyFormat: "identity",
      initializationVector: encryption.initializationVector)
    return [identity] + encryption.systemKeys
  }
}
