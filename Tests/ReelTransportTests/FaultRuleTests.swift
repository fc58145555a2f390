import HTTPTypes
import ReelCore
import Testing

@testable import ReelTesting

@Suite("Fault rules")
struct FaultRuleTests {
  @Test("Each kind is read from its text")
  func kinds() throws {
    let expected: [(String, FaultRule)] = [
      ("seg*.ts=status:503x2", FaultRule("seg*.ts", .status(503), count: 2)),
      (
        "a=status:429;Retry-After: 2",
        FaultRule("a", .status(429, headers: [.retryAfter: "2"]))
      ),
      ("*=delay:500ms", FaultRule("*", .delay(.milliseconds(500)))),
      ("*=delay:1.5s x3", FaultRule("*", .delay(.milliseconds(1_500)), count: 3)),
      ("*=silence", FaultRule("*", .silence)),
      ("*.m4s=stall:20000", FaultRule("*.m4s", .stall(after: 20_000))),
      ("a=close:0x1", FaultRule("a", .close(after: 0), count: 1)),
      ("a=reset:5", FaultRule("a", .reset(after: 5))),
      ("a=truncate:5", FaultRule("a", .truncate(to: 5))),
      ("a=length:+100", FaultRule("a", .contentLength(by: 100))),
      ("a=length:-100", FaultRule("a", .contentLength(by: -100))),
      ("a=redirect:http://h/p?a=b", FaultRule("a", .redirect(to: "http://h/p?a=b"))),
      ("a=redirects:3", FaultRule("a", .redirectChain(3))),
      ("a=loop", FaultRule("a", .redirectLoop)),
      ("a=corrupt:1000+50", FaultRule("a", .corrupt(offset: 1_000, length: 50))),
      ("a=corrupt:0.5%", FaultRule("a", .corruptShare(0.005))),
      (
        "a=fields:Cache-Control: max-age=60;ETag:x2",
        FaultRule("a", .fields([.cacheControl: "max-age=60", .eTag: ""]), count: 2)
      ),
      ("a=norangex2", FaultRule("a", .ignoreRange, count: 2)),
      ("a=gzip", FaultRule("a", .gzip)),
    ]
    for (text, rule) in expected {
      let rules = try FaultRule.parse(text)
      #expect(rules == [rule], "\(text)")
    }
  }

  @Test("Each form of the help text is read")
  func forms() throws {
    for form in FaultRule.forms {
      let rules = try FaultRule.parse("*.ts=\(form.form)x2")
      #expect(rules.count == 1 && rules[0].count == 2, "\(form.form)")
    }
  }

  @Test("Several stand in order, with commas between")
  func several() throws {
    let rules = try FaultRule.parse("seg*.ts=status:503x2, *.m4s=stall:20000,")
    #expect(
      rules == [FaultRule("seg*.ts", .status(503), count: 2), FaultRule("*.m4s", .stall(after: 20_000))])
    #expect(try FaultRule.parse("").isEmpty)
  }

  @Test(
    "What is no rule is refused",
    arguments: [
      "a", "=gzip", "a=", "a=what", "a=status", "a=status:99", "a=status:abc", "a=status:503;x", "a=delay:5",
      "a=delay:-5ms", "a=stall", "a=stall:-1", "a=close:x", "a=length:0", "a=redirect", "a=redirects:0",
      "a=corrupt:5", "a=corrupt:0%", "a=corrupt:101%", "a=gzip:1", "a=loop:1", "a=stall:1x0",
      "a=fields", "a=fields:ETag",
    ])
  func malformed(text: String) {
    #expect(throws: ReelError.self) { try FaultRule.parse(text) }
  }

  @Test("Patterns are for the last part of a path, or, with a slash, for all of it")
  func patterns() {
    func matches(_ pattern: String, _ path: String) -> Bool { FaultRule(pattern, .gzip).matches(path: path) }
    #expect(matches("a.ts", "/x/y/a.ts"))
    #expect(matches("*.ts", "/x/y/a.ts"))
    #expect(matches("x/*.ts", "/x/y/a.ts"))
    #expect(matches("/x/*", "/x/y/a.ts"))
    #expect(!matches("y/*.ts", "/x/y/a.ts"))
    #expect(!matches("a", "/x/y/a.ts"))
    #expect(matches("*", "/"))
    #expect(matches("seg?.ts", "/seg1.ts"))
    #expect(!matches("seg?.ts", "/seg10.ts"))
  }

  @Test("Stars do not take for ever")
  func manyStars() {
    let pattern = String(repeating: "*a", count: 200) + "b"
    #expect(!Glob.matches(pattern, String(repeating: "a", count: 2_000)))
  }
}
