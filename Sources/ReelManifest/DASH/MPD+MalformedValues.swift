import ReelCore

extension MPD {
  /// The values of a SegmentBase, SegmentList or SegmentTemplate that can't be read.
  ///
  /// They do not end the reading of the MPD: they rule out the Representations that the element holds for. Each has had
  /// its warning when it was read.
  struct MalformedValues: Sendable {
    /// By the attribute, or by the child element that it stands in.
    private var errors: [(name: String, error: ReelError)] = []

    /// The first that is not of one of these attributes and elements.
    func first(except names: Set<String> = []) -> ReelError? {
      errors.first { !names.contains($0.name) }?.error
    }

    /// What `read` gives; nil where it throws, which is noted.
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

    /// Notes that something can't be read: of one name the first.
    mutating func add(_ error: ReelError, of name: String, _ reader: inout MPDReader) {
      guard !contains(name) else { return }
      reader.xml.warnings.add(error)
      errors.append((name, error))
    }

    /// Takes over those of the element around it, but for what `isStated` here.
    mutating func inherit(_ parent: MalformedValues, unless isStated: (String) -> Bool) {
      errors += parent.errors.filter { !contains($0.name) && !isStated($0.name) }
    }

    func contains(_ name: String) -> Bool { errors.contains { $0.name == name } }
  }
}

extension MPD.MalformedValues {
  /// A whole number of the start tag.
  mutating func integer(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.integer(name) }
  }

  /// A whole number from 0 on.
  mutating func natural(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.natural(name) }
  }

  /// A whole number from 1 on.
  mutating func counting(_ name: StaticString, _ reader: inout MPDReader) -> Int64? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.counting(name) }
  }

  /// A byte range.
  mutating func byteRange(_ name: StaticString, _ reader: inout MPDReader) -> ByteRange? {
    value(of: name.description, &reader) { xml throws(ReelError) in try xml.byteRange(name) }
  }
}
