import ReelCore

extension MPD {
  /// The unreadable values of a SegmentBase, SegmentList or SegmentTemplate.
  ///
  /// They do not make the whole MPD invalid, only the Representations that the element applies to. Each one has
  /// caused a warning when it was read. Attributes that only describe the media (`@bandwidth`, `@frameRate`,
  /// `@minBufferTime`) are not recorded: an unreadable one is ignored with a warning.
  struct MalformedValues: Sendable {
    /// The errors by the name of the attribute, or of the child element that contains it.
    private var errors: [(name: String, error: ReelError)] = []

    /// The first error about any other attribute or element than `names`.
    func first(except names: Set<String> = []) -> ReelError? {
      errors.first { !names.contains($0.name) }?.error
    }

    /// The result of `read`; nil if it throws, in which case the error is recorded.
    mutating func value<Value>(
      of name: String, _ reader: inout MPDReader,
      _ read: (inout XMLReader) throws(ReelError) -> Value?
    ) -> Value? {
      do throws(ReelError) {
        return try read(&reader.xml)
      } catch {
        add(error, of: name, &reader)
        return nil
      }
    }

    /// Records an error. Only the first one for each name counts.
    mutating func add(_ error: ReelError, of name: String, _ reader: inout MPDReader) {
      guard !contains(name) else { return }
      reader.xml.warnings.add(error)
      errors.append((name, error))
    }

    /// Inherits the errors of the parent element, except for values that this element states itself.
    mutating func inherit(_ parent: MalformedValues, unless isStated: (String) -> Bool) {
      errors += parent.errors.filter { !contains($0.name) && !isStated($0.name) }
    }

    func contains(_ name: String) -> Bool { errors.contains { $0.name == name } }
  }
}

extension MPD.MalformedValues {
  /// A whole number attribute.
  mutating func integer(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.integer(name) }
  }

  /// A non-negative whole number attribute.
  mutating func natural(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.natural(name) }
  }

  /// A positive whole number attribute.
  mutating func counting(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.counting(name) }
  }

  /// A byte range attribute.
  mutating func byteRange(_ name: StaticString, _ reader: inout MPDReader) -> ByteRange? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.byteRange(name) }
  }
}
