// One import for a program that plays media. Walks through feeds (`ReelReplay`), an HLS server (`ReelGateway`) and help
// for tests (`ReelTesting`) are imported by themselves.

@_exported public import ReelCore
@_exported public import ReelFFmpeg
@_exported public import ReelManifest
@_exported public import ReelPlayback
@_exported public import ReelPool
@_exported public import ReelTransport
