import ReelCore
import ReelPool
import Testing

@Suite("Sizes in bytes")
struct ByteSizeTests {
  @Test(
    "Units and plain numbers",
    arguments: [
      ("64MB", 64_000_000), ("1.5GiB", 1_610_612_736), ("800kB", 800_000), ("800 KB", 800_000), ("12", 12),
      (" 3 mib ", 3_145_728), ("7B", 7), ("0", 0), ("1GB", 1_000_000_000), ("2KiB", 2048),
      ("64M", 64_000_000),
      ("30k", 30_000), ("1.5Gi", 1_610_612_736),
    ])
  func sound(text: String, byteCount: Int) throws {
    #expect(try ByteSize(parsing: text).byteCount == byteCount)
  }

  @Test("What is no size", arguments: ["", "MB", "-1MB", "1Mbit", "1x", "1e9", "1 MB 2", "nan", "2000000GB"])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try ByteSize(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test(
    "As text",
    arguments: [
      (0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (3_460_000, "3.5 MB"), (999_960, "1 MB"),
      (999_940, "999.9 kB"),
      (2_000_000_000, "2 GB"),
    ])
  func description(byteCount: Int, text: String) {
    #expect(ByteSize(byteCount: byteCount).description == text)
  }
}
