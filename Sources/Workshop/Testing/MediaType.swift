/// The media types of an `Origin`, by file extension.
enum MediaType {
  static func type(forPath path: String) -> String {
    let name = path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
    guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
    return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
  }

  private static let types: [String: String] = [
    "m3u8": "application/vnd.apple.mpegurl",
    "m3u": "audio/mpegurl",
    "mpd": "application/dash+xml",
    "ts": "video/mp2t",
    "m4s": "video/iso.segment",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "cmfv": "video/mp4",
    "m4a": "audio/mp4",
    "cmfa": "audio/mp4",
    "mov": "video/quicktime",
    "mkv": "video/x-matroska",
    "webm": "video/webm",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "ac3": "audio/ac3",
    "ec3": "audio/eac3",
    "wav": "audio/wav",
    "vtt": "text/vtt; charset=utf-8",
    "webvtt": "text/vtt; charset=utf-8",
    "srt": "application/x-subrip",
    "ttml": "application/ttml+xml",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "htm": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "xml": "application/xml",
    "txt": "text/plain; charset=utf-8",
    "key": "application/octet-stream",
  ]
}
