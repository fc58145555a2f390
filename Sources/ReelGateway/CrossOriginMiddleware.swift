import HTTPTypes
import Hummingbird

/// Lets any page read the responses (CORS), and refuses methods other than GET, HEAD and OPTIONS.
///
/// Hummingbird's own middleware adds its fields only to requests with an origin, and never those that expose
/// other fields. A browser's cache could then serve a response without them to a page that may not read it.
struct CrossOriginMiddleware<Context: RequestContext>: RouterMiddleware {
  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    var response: Response
    switch request.method {
    case .options:
      response = Response(status: .noContent)
      response.headers[.accessControlAllowMethods] = "GET, HEAD, OPTIONS"
      response.headers[.accessControlAllowHeaders] = "*, Range, Content-Type, Authorization"
      response.headers[.accessControlMaxAge] = "86400"
      response.headers[.allow] = "GET, HEAD, OPTIONS"
    case .get, .head:
      do {
        response = try await next(request, context)
      } catch let error as HTTPError where error.status == .notFound {
        response = .text(.notFound, "nothing is served here")
      }
    default:
      response = .text(.methodNotAllowed, "\(request.method.rawValue.prefix(20)) is not served")
      response.headers[.allow] = "GET, HEAD, OPTIONS"
    }
    response.headers[.accessControlAllowOrigin] = "*"
    response.headers[.accessControlExposeHeaders] =
      "Accept-Ranges, Content-Encoding, Content-Length, Content-Range, Date, Location"
    return request.method == .head ? response.createHeadResponse() : response
  }
}

extension Response {
  /// An answer of one line, for people.
  static func text(_ status: HTTPResponse.Status, _ text: String) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
  }
}
