// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A module of one of the three layers. A layer uses only itself and those above it in this file.
func module(
  _ name: String, in layer: String, _ dependencies: [Target.Dependency], resources: [Resource] = []
) -> Target {
  .target(
    name: "Reel\(name)", dependencies: dependencies, path: "Sources/\(layer)/\(name)", resources: resources,
    swiftSettings: settings)
}

/// The tests of a module. They are not optimized: each runs only once, so that would take longer than it saves.
func tests(_ module: String, _ dependencies: [Target.Dependency], packageAccess: Bool = true) -> Target {
  .testTarget(
    name: "\(module)Tests", dependencies: dependencies + ["ReelCore", "ReelTestSupport"],
    packageAccess: packageAccess,
    swiftSettings: settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))])
}

let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let metricsTestKit = Target.Dependency.product(name: "MetricsTestKit", package: "swift-metrics")
let deques = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let nio = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")

// What a program imports.
let libraryModules = [
  "Reel", "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelCache", "ReelSources",
  "ReelReading", "ReelPlayback", "ReelPool",
]
let library: [Target] = [
  .systemLibrary(
    name: "CFFmpeg",
    path: "CModules/CFFmpeg",
    pkgConfig: "libavformat",
    providers: [
      .apt(["libavformat-dev", "libavcodec-dev", "libavutil-dev", "libswscale-dev", "libswresample-dev"]),
      .brew(["ffmpeg"]),
    ]
  ),
  .target(name: "CMemory", path: "CModules/CMemory"),
  .target(name: "CFFmpegShims", dependencies: ["CFFmpeg", "CMemory"], path: "CModules/CFFmpegShims"),
  module("Core", in: "Library", ["CMemory", httpTypes, metrics]),
  module("Manifest", in: "Library", ["ReelCore"]),
  module("FFmpeg", in: "Library", ["ReelCore", "CFFmpeg", "CFFmpegShims", "CMemory", logging]),
  module(
    "Transport", in: "Library",
    [
      "ReelCore", httpTypes, logging, nio, nioHTTP, nioPosix,
      .product(name: "AsyncHTTPClient", package: "async-http-client"),
      .product(name: "NIOHTTP2", package: "swift-nio-http2"),
      .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ]),
  module("Cache", in: "Library", ["ReelCore", "ReelManifest", "ReelFFmpeg", httpTypes, logging]),
  module("Sources", in: "Library", ["ReelCore", "ReelManifest", httpTypes, logging]),
  module(
    "Reading", in: "Library",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelSources", deques, httpTypes, logging,
      .product(name: "SystemPackage", package: "swift-system"),
    ]),
  module(
    "Playback", in: "Library",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelSources", "ReelReading", deques, logging, metrics,
      httpTypes,
    ]),
  module(
    "Pool", in: "Library",
    [
      "ReelCore", "ReelFFmpeg", "ReelSources", "ReelReading", "ReelPlayback", httpTypes,
      logging,
    ]),
  .target(
    name: "Reel",
    dependencies: [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelCache", "ReelSources", "ReelReading",
      "ReelPlayback", "ReelPool", logging,
    ],
    path: "Sources/Library/Reel", swiftSettings: settings),
]

// What stands on it.
let tools: [Target] = [
  module(
    "Files", in: "Tools",
    [
      "ReelCore", "ReelFFmpeg", "ReelReading", "ReelPlayback",
      .product(name: "SystemPackage", package: "swift-system"),
    ]),
  module(
    "Stills", in: "Tools",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelSources", "ReelReading", logging,
    ]),
  module(
    "Simulation", in: "Tools",
    [
      "ReelCore", "ReelFFmpeg", "ReelSources", "ReelPlayback", "ReelPool", deques, httpTypes,
      logging,
    ]),
  // Its files become arrays of bytes in the code, so that a program stays one file.
  module(
    "Models", in: "Tools",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelSources", "ReelReading", "ReelPool", "ReelSimulation",
      httpTypes, logging,
    ],
    resources: ["avplayer", "chromium", "hls.js", "media3", "mpv", "playbin3", "video.js"]
      .map { .embedInCode("Shipped/\($0).json") }),
  module("Rules", in: "Tools", ["ReelCore", "ReelManifest"]),
  module(
    "Check", in: "Tools",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelSources", "ReelReading", "ReelPlayback",
      "ReelSimulation", "ReelModels", "ReelRules", httpTypes,
      logging,
    ]),
  module(
    "Gateway", in: "Tools",
    [
      "ReelCore", "ReelManifest", "ReelSources", httpTypes, logging, nio, nioHTTP, nioPosix,
      .product(name: "HummingbirdCore", package: "hummingbird"),
      lifecycle,
    ]),
  // Apart from the gateway, which needs no FFmpeg.
  module("GatewayKeys", in: "Tools", ["ReelCore", "ReelFFmpeg", "ReelSources", "ReelGateway"]),
]

// Programs that measure memory link ReelArenas and with it jemalloc; the library does not. A sanitizer brings its own malloc:
// jemalloc beside it would serve C++'s `new`, and the sanitizer its `delete`.
let hasArenas = Context.environment["REEL_SANITIZER"] == nil
let arenas: [Target] = [
  .systemLibrary(
    name: "CJemalloc",
    path: "CModules/CJemalloc",
    pkgConfig: "jemalloc",
    providers: [.apt(["libjemalloc-dev"]), .brew(["jemalloc"])]
  ),
  .target(name: "CArenas", dependencies: ["CJemalloc", "CMemory"], path: "CModules/CArenas"),
  module("Arenas", in: "Tools", ["CArenas"]),
  tests("ReelArenas", ["ReelArenas", "ReelPlayback", "ReelFFmpeg"]),
]

// Where feeds are tried out, and the command.
let workshop: [Target] = [
  module(
    "Lab", in: "Workshop",
    [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelSources", "ReelReading", "ReelPlayback", "ReelPool",
      "ReelFiles", "ReelSimulation", "ReelModels",
      deques, httpTypes, logging,
      .product(name: "SystemPackage", package: "swift-system"),
    ]),
  module(
    "Testing", in: "Workshop",
    [
      "ReelCore", "ReelFFmpeg", "ReelReading", "ReelPlayback", "ReelPool", "ReelSimulation",
      httpTypes, logging, nio,
      nioHTTP,
      nioPosix,
    ]),
  .executableTarget(
    name: "ReelCommand",
    dependencies: [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelCache", "ReelSources", "ReelReading",
      "ReelPlayback", "ReelPool", "ReelFiles",
      "ReelStills", "ReelSimulation", "ReelModels", "ReelCheck", "ReelGateway", "ReelGatewayKeys", "ReelLab",
      "ReelTesting",
      deques, httpTypes, logging,
      .product(name: "ArgumentParser", package: "swift-argument-parser"),
    ] + (hasArenas ? ["ReelArenas"] : []),
    path: "Sources/Workshop/Command", swiftSettings: settings),
]

let testTargets: [Target] = [
  .target(
    name: "ReelTestSupport",
    dependencies: [
      "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelSources", "ReelReading", "ReelPlayback",
      "ReelSimulation",
      "ReelLab", "ReelTesting", httpTypes, logging,
    ],
    path: "Tests/ReelTestSupport", swiftSettings: settings),
  // What programs of other packages can write.
  tests(
    "Reel",
    [
      "Reel", "ReelStills", "ReelGateway", "ReelGatewayKeys", "ReelTesting", httpTypes, metrics,
      metricsTestKit,
    ],
    packageAccess: false),
  tests("ReelCore", [httpTypes]),
  tests("ReelManifest", ["ReelManifest", "ReelRules"]),
  tests("ReelRules", ["ReelRules", "ReelManifest"]),
  tests("ReelFFmpeg", ["ReelFFmpeg", "ReelStills", logging]),
  tests(
    "ReelTransport",
    [
      "ReelTransport", "ReelTesting", "ReelSimulation", httpTypes, nio, nioPosix,
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ]),
  tests("ReelCache", ["ReelCache", "ReelReading", "ReelSources", "ReelFFmpeg", httpTypes, logging]),
  tests("ReelTesting", ["ReelTesting", "ReelTransport", "ReelManifest", httpTypes]),
  tests(
    "ReelPlayback",
    [
      "Reel", "ReelSources", "ReelReading", "ReelPlayback", "ReelTransport", "ReelTesting", "ReelFFmpeg",
      "ReelManifest", "ReelPool",
      "ReelFiles", "ReelSimulation", "ReelLab", httpTypes, logging,
    ]),
  tests(
    "ReelScenario",
    [
      "ReelPool", "ReelSources", "ReelReading", "ReelPlayback", "ReelFFmpeg", "ReelSimulation", "ReelTesting",
      logging,
    ]),
  tests(
    "ReelPool",
    [
      "Reel", "ReelPool", "ReelLab", "ReelSimulation", "ReelSources", "ReelReading", "ReelPlayback",
      "ReelTesting", "ReelFFmpeg",
      httpTypes, logging,
    ]),
  tests(
    "ReelFiles",
    [
      "ReelFiles", "ReelFFmpeg", "ReelReading", "ReelPlayback", logging,
    ]),
  tests(
    "ReelStills",
    [
      "ReelStills", "ReelFFmpeg", "ReelManifest", "ReelSources", "ReelReading", "ReelTesting",
      httpTypes,
      logging,
    ]),
  tests(
    "ReelSimulation",
    [
      "ReelSimulation", "ReelFFmpeg", "ReelSources", "ReelPlayback", "ReelPool", httpTypes,
      logging,
    ]),
  tests(
    "ReelModels", ["ReelModels", "ReelSimulation", "ReelSources"]),
  tests(
    "ReelCheck",
    [
      "ReelCheck", "ReelModels", "ReelRules", "ReelSimulation", "ReelTesting", "ReelTransport", "ReelSources",
      "ReelPlayback",
      "ReelManifest",
      "ReelFFmpeg",
      httpTypes, logging,
    ]),
  tests(
    "ReelLab",
    [
      "ReelLab", "ReelModels", "ReelSimulation", "ReelPool", "ReelSources", "ReelReading", "ReelPlayback",
      "ReelFFmpeg", "ReelTesting",
      logging,
    ]),
  tests(
    "ReelGateway",
    [
      "ReelGateway", "ReelGatewayKeys", "ReelTesting", "ReelManifest", "ReelFFmpeg", "ReelSources",
      "ReelReading",
      lifecycle, logging, nio, nioPosix,
    ]),
  tests(
    "ReelCommand",
    [
      "ReelCommand", "ReelCheck", "ReelLab", "ReelModels", "ReelSimulation", "ReelSources", "ReelReading",
      "ReelPlayback",
      "ReelPool", "ReelTesting",
      "ReelFFmpeg", logging, .product(name: "ArgumentParser", package: "swift-argument-parser"),
      "ReelManifest", httpTypes,
    ]),
]

let package = Package(
  name: "Reel",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Reel", targets: libraryModules),
    .library(name: "ReelFiles", targets: ["ReelFiles"]),
    .library(name: "ReelStills", targets: ["ReelStills"]),
    // With what fetches over HTTP: neither needs FFmpeg.
    .library(name: "ReelGateway", targets: ["ReelGateway", "ReelSources", "ReelTransport", "ReelCore"]),
    .library(
      name: "ReelGatewayKeys", targets: ["ReelGatewayKeys", "ReelGateway", "ReelSources", "ReelCore"]),
    .library(name: "ReelTesting", targets: ["ReelTesting", "ReelSimulation"]),
    .executable(name: "reel", targets: ["ReelCommand"]),
  ] + (hasArenas ? [.library(name: "ReelArenas", targets: ["ReelArenas"])] : []),
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: library + tools + (hasArenas ? arenas : []) + workshop + testTargets
)
