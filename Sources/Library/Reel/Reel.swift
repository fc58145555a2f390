// The one import that a program needs to play media. `ReelLab` (simulated walks through feeds), `ReelGateway` (an
// HLS server) and `ReelTesting` (an HTTP origin for tests) are separate imports.

@_exported public import ReelCore
@_exported public import ReelFFmpeg
@_exported public import ReelManifest
@_exported public import ReelPlayback
@_exported public import ReelPool
@_exported public import ReelTransport
