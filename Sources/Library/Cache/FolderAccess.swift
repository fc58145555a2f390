internal import Foundation
internal import ReelCore

/// A call of the system that failed.
struct SystemFailure: Error, Equatable {
  /// The folder is no longer the one that was opened.
  static let folderIsGone = SystemFailure("the folder has been removed or replaced", code: 0)
  /// The folder has other content, or is another user's.
  static let isNoCache = SystemFailure("the folder is not a cache", code: 0)

  let action: String
  let code: Int32

  /// Takes the number of the error from `errno`; 0 for none.
  init(_ action: String, code: Int32 = errno) {
    self.action = action
    self.code = code
  }

  var reason: String { code == 0 ? action : "\(action): \(ReelError.systemText(code))" }

  /// The error for a program: of kind `usage` or `noSuchFile`, or else of this kind.
  func reelError(_ kind: ReelError.Kind, at folder: URL) -> ReelError {
    let path = folder.path(percentEncoded: false)
    if self == .isNoCache { return ReelError(.usage, reason, at: path) }
    return code == ENOENT ? .unreadable(code, at: path) : ReelError(kind, reason, at: path)
  }
}

/// An open folder. Names are those of files and folders in it. A link in the place of one is not followed: it counts
/// as none.
///
/// *Ownership.* Closes its descriptor.
struct OpenFolder: ~Copyable, Sendable {
  let descriptor: Int32

  /// Opens a folder by its path, which may lead through links.
  init(path: String) throws(SystemFailure) {
    descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if descriptor < 0 { throw SystemFailure("can't open the folder") }
  }

  private init(adopting descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Returns a folder in it, or nil if there is none.
  func folder(_ name: String) throws(SystemFailure) -> OpenFolder? {
    try descriptor(of: name, O_RDONLY | O_DIRECTORY).map { OpenFolder(adopting: $0) }
  }

  /// Returns a folder in it, which is made if there is none.
  func makeFolder(_ name: String) throws(SystemFailure) -> OpenFolder {
    if let folder = try folder(name) { return folder }
    guard mkdirat(descriptor, name, 0o700) == 0 || errno == EEXIST, let folder = try folder(name) else {
      throw SystemFailure("can't make a folder")
    }
    return folder
  }

  /// Returns a file in it, or nil if there is none.
  func file(_ name: String) throws(SystemFailure) -> OpenFile? {
    // Without O_NONBLOCK, a pipe in its place would block.
    try descriptor(of: name, O_RDONLY | O_NONBLOCK).map { OpenFile(adopting: $0) }
  }

  /// Returns a file in it to write, which is made if there is none.
  ///
  /// - Parameter flags: `O_EXCL` to refuse one that exists.
  func makeFile(_ name: String, _ flags: Int32 = 0) throws(SystemFailure) -> OpenFile {
    guard let file = try descriptor(of: name, O_RDWR | O_NONBLOCK | O_CREAT | flags) else {
      throw SystemFailure("can't make a file")
    }
    return OpenFile(adopting: file)
  }

  /// Returns a descriptor, or nil if there is nothing of that kind and name.
  private func descriptor(of name: String, _ flags: Int32) throws(SystemFailure) -> Int32? {
    let opened = openat(descriptor, name, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
    if opened >= 0 { return opened }
    let code = errno
    // ENOTDIR and ELOOP: something else is in its place.
    if code == ENOENT || code == ENOTDIR || code == ELOOP { return nil }
    throw SystemFailure("can't open a file", code: code)
  }

  /// The state of a file in it, of a link itself; nil if there is none.
  func status(_ name: String) -> FileStatus? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? FileStatus(status) : nil
  }

  /// Its own state.
  var status: FileStatus? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? FileStatus(status) : nil
  }

  /// The names of what is in it, in no order.
  func names() throws(SystemFailure) -> [String] {
    guard let copy = try descriptor(of: ".", O_RDONLY | O_DIRECTORY), let stream = fdopendir(copy) else {
      throw SystemFailure("can't list a folder")
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      // The system's struct ends with the name, often before the end of the type.
      let start = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
      let name = String(cString: start.assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Removes a file in it, if there is one.
  func removeFile(_ name: String) throws(SystemFailure) {
    if unlinkat(descriptor, name, 0) == 0 { return }
    let code = errno
    // EISDIR, on Darwin EPERM: a folder, which somebody has put there, stays.
    guard code == ENOENT || code == EISDIR || code == EPERM else {
      throw SystemFailure("can't remove a file", code: code)
    }
  }

  /// Removes a folder in it, if that is empty.
  func removeFolder(_ name: String) { unlinkat(descriptor, name, AT_REMOVEDIR) }

  /// Makes a file's time of use the current one.
  func touch(_ name: String) { utimensat(descriptor, name, nil, AT_SYMLINK_NOFOLLOW) }
}

/// An open file.
///
/// *Ownership.* Closes its descriptor, which ends its lock.
struct OpenFile: ~Copyable, Sendable {
  let descriptor: Int32

  fileprivate init(adopting descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  var status: FileStatus? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? FileStatus(status) : nil
  }

  /// Returns `count` bytes from a position on; nil if there are fewer or they can't be read.
  func read(_ count: Int, at position: Int) -> [UInt8]? {
    var done = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
      while done < count {
        let read = pread(
          descriptor, buffer.baseAddress.map { $0 + done }, count - done, off_t(position + done))
        if read > 0 { done += read } else if read == 0 || errno != EINTR { break }
      }
      length = done
    }
    return done == count ? bytes : nil
  }

  func write(_ bytes: [UInt8]) throws(SystemFailure) {
    var done = 0
    while done < bytes.count {
      let written = bytes.withUnsafeBytes {
        pwrite(descriptor, $0.baseAddress.map { $0 + done }, bytes.count - done, off_t(done))
      }
      if written > 0 { done += written } else if errno != EINTR { throw SystemFailure("can't write") }
    }
  }

  func synchronize() { fsync(descriptor) }

  /// Takes the lock, which ends with the file or its process; false if somebody else has it.
  func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

  func awaitLock() throws(SystemFailure) {
    while flock(descriptor, LOCK_EX) != 0 {
      if errno != EINTR { throw SystemFailure("can't lock a file") }
    }
  }

  func unlock() { flock(descriptor, LOCK_UN) }

  /// Makes its time of use the current one.
  func touch() { futimens(descriptor, nil) }
}

/// What the system says of a file.
struct FileStatus {
  let byteCount: Int
  /// The bytes it takes on the disk: whole blocks. More than its blocks if the system allocates them later.
  let cost: Int64
  /// The time of its last use, in nanoseconds since 1970.
  let time: Int64
  let isRegular: Bool
  let isLinked: Bool
  let owner: uid_t
  /// Tells files apart.
  let device: UInt64
  let node: UInt64

  func isSame(as other: FileStatus?) -> Bool { device == other?.device && node == other?.node }

  static let blockByteCount: Int64 = 4096

  static func cost(ofByteCount byteCount: Int64) -> Int64 {
    (byteCount + blockByteCount - 1) / blockByteCount * blockByteCount
  }

  init(_ status: stat) {
    byteCount = Int(status.st_size)
    cost = max(Int64(status.st_blocks) * 512, Self.cost(ofByteCount: Int64(status.st_size)))
    #if canImport(Darwin)
      let changed = status.st_mtimespec
    #else
      let changed = status.st_mtim
    #endif
    // Any number can be set as the time of a file.
    let seconds = min(max(Int64(changed.tv_sec), -9_000_000_000), 9_000_000_000)
    time = seconds * 1_000_000_000 + Int64(changed.tv_nsec)
    isRegular = status.st_mode & S_IFMT == S_IFREG
    isLinked = status.st_nlink > 0
    owner = status.st_uid
    device = UInt64(truncatingIfNeeded: status.st_dev)
    node = UInt64(truncatingIfNeeded: status.st_ino)
  }
}
