internal import ReelCore

/// Counts the bytes of response bodies that have arrived and have not been taken yet.
struct CountedFetcher: Fetching {
  let base: any Fetching
  let memory: LoadingMemory

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.recordHeld = { [memory] in memory.addInFlight($0) }
    return try await base.fetch(request)
  }
}
