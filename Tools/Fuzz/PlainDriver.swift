import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Fuzzes without libFuzzer, blindly: for toolchains that come without it (Xcode's).
///
///     fuzz SECONDS FILE FOLDER    changes the inputs in FOLDER; FILE holds the one that is being tried
///     fuzz FILE                   tries one input
///
/// A trap, an alarm after ten seconds, or too much memory ends the process; FILE is then the input that did it.
@main
enum PlainDriver {
  private static let inputLimit = 32_768

  static func main() throws {
    let environment = ProcessInfo.processInfo.environment
    if let folder = environment["REEL_FUZZ_SEEDS"] { SeedFolder.writeAndExit(folder) }
    let arguments = CommandLine.arguments
    guard let target = environment["REEL_FUZZ_TARGET"].flatMap({ FuzzTarget(rawValue: $0) }),
      [2, 4].contains(arguments.count)
    else {
      FileHandle.standardError.write(Data("fuzz: see PlainDriver.swift for its arguments\n".utf8))
      exit(64)
    }
    limitMemory()
    if arguments.count == 2 {
      alarm(10)
      target.run(Array(try Data(contentsOf: URL(filePath: arguments[1]))))
      return
    }
    let seconds = Double(arguments[1]) ?? 1
    let files = try FileManager.default.contentsOfDirectory(
      at: URL(filePath: arguments[3]), includingPropertiesForKeys: nil)
    let seeds = try files.sorted { $0.path() < $1.path() }.map {
      Array(try Data(contentsOf: $0).prefix(inputLimit))
    }
    let file = open(arguments[2], O_RDWR | O_CREAT | O_TRUNC, 0o644)
    guard file >= 0 else { exit(73) }
    let end = ContinuousClock.now + .seconds(seconds)
    let start = UInt64.random(in: 0...UInt64(UInt32.max))
    var count = 0
    while ContinuousClock.now < end {
      var input = seeds.isEmpty ? [] : seeds[count % seeds.count]
      // Each seed is tried as it is first.
      if count >= seeds.count {
        var mutator = Mutator(seed: start &+ UInt64(count), shape: target.shape)
        for _ in 0...(count % 4) { input = mutator.mutated(input, limit: inputLimit) }
      }
      _ = input.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
      ftruncate(file, off_t(input.count))
      alarm(10)
      target.run(input)
      count += 1
    }
    print("stat::number_of_executed_units: \(count)")
  }

  private static func limitMemory() {
    #if canImport(Darwin)
      var limit = rlimit(rlim_cur: 4 << 30, rlim_max: 4 << 30)
      setrlimit(RLIMIT_AS, &limit)
    #else
      var limit = rlimit(rlim_cur: 2 << 30, rlim_max: 2 << 30)
      setrlimit(__rlimit_resource_t(2), &limit)  // RLIMIT_DATA
    #endif
  }
}
