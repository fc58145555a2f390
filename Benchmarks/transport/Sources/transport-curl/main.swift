import Measuring

try await measure { options in
  var curl = CurlOptions()
  curl.authorities = options.authorities
  curl.bufferSize = options.buffer ?? curl.bufferSize
  curl.connectTimeout = options.timeout * 1_000
  curl.idleTimeout = options.timeout
  curl.connectionsAhead = options.ahead
  return CurlFetcher(curl)
}
