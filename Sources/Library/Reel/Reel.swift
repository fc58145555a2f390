// The one import that a program needs to play media. The other products, for files, simulations, tests and an HLS server, are
// separate imports.

@_exported public import ReelCache
@_exported public import ReelCore
@_exported public import ReelFFmpeg
@_exported public import ReelManifest
@_exported public import ReelPlayback
@_exported public import ReelPool
@_exported public import ReelReading
@_exported public import ReelSources
@_exported public import ReelTransport
