/// The item of a feed that a pool makes a request for.
///
/// A fetcher behind the pool's own reads it while `fetch(_:)` begins.
package enum RequestOwner {
  /// `nil` outside a pool, and for posters.
  @TaskLocal package static var item: FeedItem.ID?
}
