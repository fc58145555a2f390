import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// Parses one XML file over and over with Foundation's `XMLParser`, counts its elements, and makes nothing of them:
///
///     parse-xml FILE RUNS
@main
enum ParseXML {
  private final class Counter: NSObject, XMLParserDelegate {
    var count = 0

    func parser(
      _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
      qualifiedName qName: String?, attributes attributeDict: [String: String]
    ) {
      count += 1
    }
  }

  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let runs = Int(arguments[2]), runs > 0 else { exit(64) }
    let data = try Data(contentsOf: URL(filePath: arguments[1]))
    let peakBefore = peakMemory()
    var (times, count): ([Double], Int) = ([], 0)
    for _ in 0..<runs {
      let begin = coreTime()
      let counter = Counter()
      let parser = XMLParser(data: data)
      parser.delegate = counter
      guard parser.parse() else { exit(65) }
      times.append(coreTime() - begin)
      count = counter.count
    }
    let peak = peakMemory()
    print(
      #"{"first_ms": \#(times[0]), "median_ms": \#(times.sorted()[runs / 2]), "segments": 0, "#
        + #""memory_bytes": \#(peak), "before_bytes": \#(peakBefore), "checksum": \#(count)}"#)
  }
}
