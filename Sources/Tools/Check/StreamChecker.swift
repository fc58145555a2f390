package import Logging
package import ReelCore
package import ReelPlayback

/// Checks sources: opens each as a player does, reads every rung alone, and judges what was measured.
package struct StreamChecker: Sendable {
  package var fetcher: any Fetching
  package let configuration: LoadingConfiguration
  package let options: CheckOptions
  package let logger: Logger

  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, options: CheckOptions, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.options = options
    self.logger = logger
  }

  /// Checks a source. A broken stream is a result with findings.
  ///
  /// Throws `ReelError` for a source that can't be checked at all (`unsupported`, `usage`), or `CancellationError`.
  package func check(_ source: MediaSource) async throws -> CheckResult {
    CheckResult(source: source.name)
  }
}
