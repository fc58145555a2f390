internal import ReelCore

/// Counts what is held of answers' bodies, before it is taken, as bytes on their way.
struct CountedFetcher: Fetching {
  let base: any Fetching
  let memory: LoadingMemory

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.noteHeld = { [memory] in memory.addInFlight($0) }
    return try await base.fetch(request)
  }
}
