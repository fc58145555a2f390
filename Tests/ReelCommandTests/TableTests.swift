import Testing

@testable import ReelCommand

@Suite("Tables")
struct TableTests {
  private static let url = "http://127.0.0.1:8080/a/rather/long/path/to/hls-fmp4/master.m3u8"

  private static var table: Table {
    var table = Table([.left], indentation: 2)
    table.add(["source", "p50", "p95", "p99"])
    table.add([url, "12 ms", "120 ms", "1.2 s"])
    return table
  }

  @Test("A pipe gets whole names, whatever their length")
  func pipe() {
    let lines = Self.table.lines(in: .plain)
    #expect(lines.count == 2)
    #expect(lines[1] == "  \(Self.url)  12 ms  120 ms  1.2 s")
  }

  @Test("Long names are shortened in the middle to fit a terminal", arguments: [80, 60, 48])
  func names(width: Int) {
    let lines = Self.table.lines(in: TextLayout(width: width))
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.count <= width })
    #expect(lines[1].contains("…"))
    #expect(lines[1].contains("m3u8  12 ms  120 ms  1.2 s"))
  }

  @Test("Text in a block of its own takes the width of the terminal")
  func textBlock() {
    var table = Table([.right, .right, .right, .left])
    table.add(["a", String(repeating: "b", count: 30), String(repeating: "c", count: 30), "cause"])
    table.add(["1", "2", "3", String(repeating: "word ", count: 30)])
    let lines = table.lines(in: TextLayout(width: 70))
    #expect(lines.allSatisfy { $0.count <= 70 })
    #expect(lines.contains { $0.contains("word word word word word word word word word") })
  }

  @Test("Columns without room follow below, after the first column")
  func blocks() {
    var table = Table([.left])
    table.add(["pool"] + (1...9).map { "column \($0)" })
    table.add(["adaptive"] + (1...9).map { "\($0)" })
    let lines = table.lines(in: TextLayout(width: 40))
    #expect(lines.allSatisfy { $0.count <= 40 })
    #expect(lines.count(where: { $0.hasPrefix("adaptive") }) == 3)
    for column in 1...9 { #expect(lines.contains { $0.contains("column \(column)") }) }
  }

  @Test("All columns of names are repeated below, and names stay distinct")
  func names() {
    var table = Table([.left, .left])
    for kind in ["all", "hits"] {
      table.add(["second_frame.over_100ms", kind] + (1...9).map { "\($0)000 ms" })
    }
    let lines = table.lines(in: TextLayout(width: 60))
    #expect(lines.allSatisfy { $0.count <= 60 })
    #expect(lines.allSatisfy { $0.hasPrefix("second_frame.over_100ms  ") })
    #expect(lines.count { $0.contains("  hits  ") } == lines.count / 2)
  }

  @Test("A last column of text continues on further lines")
  func text() {
    var table = Table([.left, .left], indentation: 2)
    let words = (1...20).map { "word\($0)" }
    table.add(["bytes", words.joined(separator: " ")])
    let lines = table.lines(in: TextLayout(width: 50))
    #expect(lines.count > 1)
    #expect(lines.allSatisfy { $0.count <= 50 })
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("         ") })
    #expect(lines.flatMap { $0.split(separator: " ").map(String.init) } == ["bytes"] + words)
  }

  @Test("Colours leave the widths as they are")
  func colors() {
    var table = Table([.left])
    table.add(["hits", "10"], styles: [0: .good])
    table.add(["misses", "2"], styles: [0: .bad])
    #expect(table.lines(in: .plain) == ["hits    10", "misses   2"])
    #expect(
      table.lines(in: TextLayout(usesColor: true)) == [
        "\u{1b}[32mhits\u{1b}[0m    10", "\u{1b}[31mmisses\u{1b}[0m   2",
      ])
  }

  @Test("Lines of text are broken at spaces, and keep their indentation")
  func lines() {
    let layout = TextLayout(width: 30)
    let text = layout.fitted("  first frame  h264, High, level 1.2, yuv420p\nshort")
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.allSatisfy { $0.count <= 30 })
    #expect(lines.last == "short")
    #expect(lines[1].hasPrefix("    ") && !lines[1].hasPrefix("     "))
    #expect(layout.fitted(Self.url).count == 30)
    #expect(TextLayout.plain.fitted(Self.url) == Self.url)
  }

  @Test("--color auto is for terminals that are not dumb, without NO_COLOR")
  func modes() {
    let xterm = ["TERM": "xterm"]
    #expect(ColorMode.auto.usesColor(isTerminal: true, environment: xterm))
    #expect(!ColorMode.auto.usesColor(isTerminal: false, environment: xterm))
    #expect(!ColorMode.auto.usesColor(isTerminal: true, environment: ["TERM": "dumb"]))
    #expect(!ColorMode.auto.usesColor(isTerminal: true, environment: ["TERM": "xterm", "NO_COLOR": "1"]))
    #expect(ColorMode.auto.usesColor(isTerminal: true, environment: ["TERM": "xterm", "NO_COLOR": ""]))
    #expect(ColorMode.always.usesColor(isTerminal: false, environment: ["NO_COLOR": "1"]))
    #expect(!ColorMode.never.usesColor(isTerminal: true, environment: xterm))
    #expect(ColorMode(asking: ["frames", "--color", "never"]) == .never)
    #expect(ColorMode(asking: ["frames", "--color=always"]) == .always)
    #expect(ColorMode(asking: ["frames", "--color", "blue"]) == .auto)
  }

  @Test("A page shows what cells say, text what stands for it there")
  func page() {
    var table = Table([.left])
    table.add(cells: [.init("rung"), .init("start, lte", plain: "lte")])
    table.add(cells: [.init("a<b", plain: "a *", classes: "best"), .init("1 s", .bad)])
    #expect(table.lines(in: .plain) == ["rung  lte", "a *   1 s"])
    #expect(
      table.html(classes: "wide")
        == "<div class=\"scroll\" tabindex=\"0\"><table class=\"wide\">"
        + "<thead><tr><th>rung</th><th class=\"n\">start, lte</th></tr></thead>"
        + "<tbody><tr><td class=\"best\">a&lt;b</td><td class=\"n unmet\">1 s</td></tr></tbody></table></div>"
    )
    #expect(table.copyableText().contains("<pre>rung\tlte\na *\t1 s</pre>"))
  }

  @Test("A page leaves out a table without rows")
  func empty() {
    let table = Table(["rung", "opens"], [[String]]())
    #expect(table.html().isEmpty && table.copyableText().isEmpty)
  }
}
