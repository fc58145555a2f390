import Foundation

// What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html). `REEL_FUZZ_TARGET` names the parser; with
// `REEL_FUZZ_SEEDS` the seeds of all parsers are written into that folder, and nothing else is done.

@_silgen_name("LLVMFuzzerMutate")
func mutatedByLibFuzzer(_ data: UnsafeMutablePointer<UInt8>?, _ count: Int, _ limit: Int) -> Int

private let target: FuzzTarget = {
  let name = ProcessInfo.processInfo.environment["REEL_FUZZ_TARGET"] ?? ""
  guard let target = FuzzTarget(rawValue: name) else { fatalError("no target '\(name)'") }
  return target
}()

@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _ count: UnsafeMutablePointer<CInt>?,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?
) -> CInt {
  if let folder = ProcessInfo.processInfo.environment["REEL_FUZZ_SEEDS"] {
    SeedFolder.writeAndExit(folder)
  }
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  target.run(Array(UnsafeBufferPointer(start: data, count: count)))
  return 0
}

@_cdecl("LLVMFuzzerCustomMutator")
public func mutate(
  _ data: UnsafeMutablePointer<UInt8>?, _ count: Int, _ limit: Int, _ seed: CUnsignedInt
) -> Int {
  // libFuzzer's own changes are guided by the comparisons that it has seen; ours know the formats.
  guard seed % 3 != 0, let data else { return mutatedByLibFuzzer(data, count, limit) }
  var mutator = Mutator(seed: UInt64(seed), shape: target.shape)
  let input = Array(UnsafeBufferPointer(start: data, count: count))
  let output = mutator.mutated(input, limit: limit)
  guard !output.isEmpty else { return mutatedByLibFuzzer(data, count, limit) }
  output.withUnsafeBufferPointer { bytes in
    if let base = bytes.baseAddress { data.update(from: base, count: bytes.count) }
  }
  return output.count
}
