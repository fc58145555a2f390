import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

enum SeedFolder {
  /// Writes the seeds of all parsers below `path`, and ends the process. The remaining arguments of the process are
  /// MP4 files whose indexes are taken.
  static func writeAndExit(_ path: String) -> Never {
    let media = CommandLine.arguments.dropFirst().filter { $0.hasSuffix(".mp4") }.map { URL(filePath: $0) }
    do {
      for target in FuzzTarget.allCases {
        try Seeds.write(target, into: URL(filePath: path).appending(path: target.rawValue), media: media)
      }
      print(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))
      exit(0)
    } catch {
      FileHandle.standardError.write(Data("fuzz: the seeds can't be written: \(error)\n".utf8))
      exit(74)
    }
  }
}
