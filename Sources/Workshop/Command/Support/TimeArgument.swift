import ArgumentParser
import ReelCore

/// Reads option values that are times.
enum TimeArgument {
  /// The seconds of `2`, `2.5s`, `500ms`, `1.5min`, `1:30` or `00:01:30.5`. An `ArgumentParser` transform.
  static func seconds(_ text: String) throws -> Double {
    guard let seconds = TimeText.seconds(text) else {
      throw ValidationError("'\(text)' is not a time: write 2, 2.5s, 500ms, 1:30 or 00:01:30")
    }
    return seconds
  }
}
