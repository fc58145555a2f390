extension MultivariantPlaylist {
  /// EXT-X-CONTENT-STEERING (draft-pantos-hls-rfc8216bis §4.4.6.6): a server that names the pathway to take. It is
  /// kept, and not asked.
  public struct ContentSteering: Sendable, Hashable {
    /// SERVER-URI.
    public var reference: String
    /// PATHWAY-ID: the pathway to begin with.
    public var pathwayID: String?

    /// Nil where SERVER-URI is missing.
    init?(_ attributes: AttributeList) {
      guard let reference = attributes["SERVER-URI"] else { return nil }
      self.reference = reference
      pathwayID = attributes["PATHWAY-ID"]
    }
  }
}
