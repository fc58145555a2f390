internal import Dispatch
internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

package enum NativeThread {
  /// Runs `body` on a new thread, which ends with it. If the system has no more threads, `body` runs on a
  /// thread of Dispatch as soon as one is free.
  ///
  /// - Parameter stackSize: In bytes; nil for the system's default.
  package static func start(
    named name: String, stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void
  ) {
    // Allocated because the type's initializer belongs to a module that can't be imported on Linux.
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    defer { attributes.deallocate() }
    pthread_attr_init(attributes)
    defer { pthread_attr_destroy(attributes) }
    pthread_attr_setdetachstate(attributes, Int32(PTHREAD_CREATE_DETACHED))
    if let stackSize { pthread_attr_setstacksize(attributes, stackSize) }
    let box = Body {
      setName(name)
      body()
    }
    if !start(box, attributes) { DispatchQueue.global().async(execute: body) }
  }

  /// Names the calling thread, for debuggers and `top`. Linux truncates names to 15 bytes.
  package static func setName(_ name: String) {
    Thread.current.name = String(decoding: name.utf8.prefix(15), as: UTF8.self)
  }

  /// Makes the kernel end the calling thread's waits on time. Linux otherwise combines wake-ups within 50 µs.
  /// On other systems, and where the system does not allow it, nothing changes.
  ///
  /// Writes a file instead of calling `prctl`, which has variable arguments and so is not imported into
  /// Swift. The file is in the folder of the thread's number: there is none below `task`.
  static func endWaitsAtOnce() {
    #if os(Linux)
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      guard let number = link?.split(separator: "/").last else { return }
      let descriptor = open("/proc/\(number)/timerslack_ns", O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return }
      // In nanoseconds; 0 would restore the default.
      _ = write(descriptor, "1", 1)
      close(descriptor)
    #endif
  }

  /// Makes the calling thread, when it is woken, wait for a core instead of taking that of another thread, so
  /// that the waking thread continues first. Its share of the cores stays the same.
  ///
  /// Otherwise Linux gives a thread that has slept the core of the thread that wakes it, and a swipe that wakes
  /// decoders would end up to 10 ms late. (`SCHED_BATCH`, sched(7).) Without this, one swipe in a hundred took
  /// 10 ms with both cores busy; with it, 0.1 ms.
  package static func yieldAtWakes() {
    #if os(Linux)
      // SCHED_BATCH of <sched.h>, which is not imported. 0 is the calling thread.
      var parameters = sched_param()
      sched_setscheduler(0, 3, &parameters)
    #endif
  }

  // MARK: - Private

  /// Returns false if the system has no more threads.
  private static func start(_ body: Body, _ attributes: UnsafePointer<pthread_attr_t>) -> Bool {
    #if canImport(Glibc)
      var thread: pthread_t = 0
    #else
      var thread: pthread_t?
    #endif
    let argument = Unmanaged.passRetained(body).toOpaque()
    let code = pthread_create(
      &thread, attributes,
      { argument in
        runBody(argument)
        return nil
      }, argument)
    if code != 0 { Unmanaged<Body>.fromOpaque(argument).release() }
    return code == 0
  }
}

private final class Body: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// The argument is optional on some systems.
private func runBody(_ argument: UnsafeMutableRawPointer?) {
  guard let argument else { return }
  Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
}
