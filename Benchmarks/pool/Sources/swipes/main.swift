internal import Foundation
internal import ReelCore

let usage = """
  usage: swipes swipe warm|cold COUNT DWELL_MS URL...
         swipes handover warm|cold COUNT DWELL_MS OTHERS RATE URL...
         swipes change cold COUNT DWELL_MS CACHE|- URL...
         swipes memory warm|cold COUNT URL...
         swipes soak warm|cold SECONDS SEED URL...
         swipes laps warm|cold COUNT DWELL_MS URL...
  """

func fail(_ text: String) -> Never {
  FileHandle.standardError.write(Data("swipes: \(text)\n".utf8))
  exit(1)
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count > 3, ["warm", "cold"].contains(arguments[1]), let count = Int(arguments[2]) else {
  fail(usage)
}
let isWarm = arguments[1] == "warm"
let dwell = Duration.milliseconds(Int(arguments[3]) ?? 0)
do {
  switch arguments[0] {
  case "swipe":
    try await Walker(isWarm: isWarm).swipe(Array(arguments.dropFirst(4)), count: count, dwell: dwell)
  case "handover" where arguments.count > 6:
    try await Walker(isWarm: isWarm).handOver(
      Array(arguments.dropFirst(6)), count: count, others: Int(arguments[4]) ?? 0,
      rate: arguments[5] == "max" ? .infinity : 1, dwell: dwell)
  case "change" where arguments.count > 5:
    let cache = arguments[4] == "-" ? nil : URL(filePath: arguments[4])
    try await Walker(cache: cache).change(Array(arguments.dropFirst(5)), count: count, dwell: dwell)
  case "soak" where arguments.count > 4:
    try await Soak(Array(arguments.dropFirst(4)), isWarm: isWarm)
      .run(for: .seconds(count), seed: UInt64(arguments[3]) ?? 0)
  case "laps" where arguments.count > 4:
    try await Soak(Array(arguments.dropFirst(4)), isWarm: isWarm).lap(count, dwell: dwell)
  case "memory": try await Parking.park(Array(arguments.dropFirst(3)), count: count, isWarm: isWarm)
  default: fail(usage)
  }
} catch {
  fail("\(error)")
}
