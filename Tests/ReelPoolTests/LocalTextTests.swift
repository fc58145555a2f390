import Foundation
import ReelCore
import ReelPool
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Small local files", .hangLimit)
struct LocalTextTests {
  @Test("A pipe is read to its end")
  func pipe() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("pipe")
    #expect(mkfifo(path, 0o600) == 0)
    Thread { try? FileHandle(forWritingAtPath: path)?.write(contentsOf: Data("text".utf8)) }.start()
    #expect(try LocalText.bytes(path: path, limit: 100) == Array("text".utf8))
  }

  @Test("Only a regular file is read where one is asked for, and no pipe is waited for")
  func regularFiles() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("pipe")
    #expect(mkfifo(path, 0o600) == 0)
    for path in [path, "/dev/zero", folder.path] {
      let error = #expect(throws: ReelError.self) {
        try LocalText.bytes(path: path, limit: 1 << 20, isRegular: true)
      }
      #expect(error?.kind == .noSuchFile)
    }
    let file = folder.path("file")
    try Data("text".utf8).write(to: URL(filePath: file))
    #expect(try LocalText.bytes(path: file, limit: 100, isRegular: true) == Array("text".utf8))
  }
}
