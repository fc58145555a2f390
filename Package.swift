// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

// The tests themselves are not optimized: each runs only once, so that would take longer than it saves.
let testSettings = settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

// Programs that measure memory link ReelArenas and with it jemalloc; the library does not. A sanitizer brings its own malloc:
// jemalloc beside it would serve C++'s `new`, and the sanitizer its `delete`.
let hasArenas = Context.environment["REEL_SANITIZER"] == nil

let arenaTargets: [Target] = [
  .systemLibrary(
    name: "CJemalloc",
    path: "CModules/CJemalloc",
    pkgConfig: "jemalloc",
    providers: [.apt(["libjemalloc-dev"]), .brew(["jemalloc"])]
  ),
  .target(
    name: "CArenas",
    dependencies: ["CJemalloc", "CMemory"],
    path: "CModules/CArenas"
  ),
  .target(name: "ReelArenas", dependencies: ["CArenas"], swiftSettings: settings),
  .testTarget(
    name: "ReelArenasTests",
    dependencies: ["ReelArenas", "ReelPlayback", "ReelFFmpeg", "ReelCore", "ReelTestSupport"],
    swiftSettings: testSettings
  ),
]

let package = Package(
  name: "Reel",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Reel", targets: ["Reel"]),
    .library(name: "ReelCore", targets: ["ReelCore"]),
    .library(name: "ReelPlayback", targets: ["ReelPlayback"]),
    .library(name: "ReelManifest", targets: ["ReelManifest"]),
    .library(name: "ReelFFmpeg", targets: ["ReelFFmpeg"]),
    .library(name: "ReelTransport", targets: ["ReelTransport"]),
    .library(name: "ReelPool", targets: ["ReelPool"]),
    .library(name: "ReelReplay", targets: ["ReelReplay"]),
    .library(name: "ReelGateway", targets: ["ReelGateway"]),
    .library(name: "ReelTesting", targets: ["ReelTesting"]),
    .executable(name: "reel", targets: ["ReelCommand"]),
  ] + (hasArenas ? [.library(name: "ReelArenas", targets: ["ReelArenas"])] : []),
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
  ],
  targets: [
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
    .target(name: "ReelCore", swiftSettings: settings),
    .target(name: "ReelManifest", dependencies: ["ReelCore"], swiftSettings: settings),
    .target(
      name: "ReelFFmpeg",
      dependencies: [
        "ReelCore", "CFFmpeg", "CFFmpegShims", "CMemory",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelTransport",
      dependencies: [
        "ReelCore",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelPlayback",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelPool",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelPlayback",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelReplay",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelPlayback", "ReelPool",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelTesting",
      dependencies: [
        "ReelCore", "ReelPlayback", "ReelPool",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "ReelGateway",
      dependencies: [
        "ReelCore", "ReelManifest",
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings
    ),
    .target(
      name: "Reel",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelPlayback", "ReelPool",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "ReelCommand",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelPlayback", "ReelPool",
        "ReelReplay", "ReelGateway", "ReelTesting",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
      ] + (hasArenas ? ["ReelArenas"] : []),
      swiftSettings: settings
    ),
    .target(
      name: "ReelTestSupport",
      dependencies: [
        "ReelCore", "ReelManifest", "ReelFFmpeg", "ReelTransport", "ReelPlayback", "ReelReplay",
        "ReelTesting",
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "Tests/ReelTestSupport",
      swiftSettings: settings
    ),
    .testTarget(
      name: "ReelTests", dependencies: ["Reel", "ReelTesting", "ReelTestSupport"],
      swiftSettings: testSettings),
    .testTarget(
      name: "ReelCoreTests", dependencies: ["ReelCore", "ReelTestSupport"], swiftSettings: testSettings),
    .testTarget(
      name: "ReelManifestTests", dependencies: ["ReelManifest", "ReelCore", "ReelTestSupport"],
      swiftSettings: testSettings),
    .testTarget(
      name: "ReelFFmpegTests",
      dependencies: [
        "ReelFFmpeg", "ReelCore", "ReelTestSupport", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelTransportTests",
      dependencies: [
        "ReelTransport", "ReelTesting", "ReelCore", "ReelTestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelTestingTests",
      dependencies: ["ReelTesting", "ReelTransport", "ReelManifest", "ReelCore", "ReelTestSupport"],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelPlaybackTests",
      dependencies: [
        "Reel", "ReelPlayback", "ReelTransport", "ReelTesting", "ReelFFmpeg", "ReelManifest", "ReelCore",
        "ReelPool", "ReelReplay", "ReelTestSupport", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelPoolTests",
      dependencies: [
        "Reel", "ReelPool", "ReelReplay", "ReelPlayback", "ReelTesting", "ReelFFmpeg", "ReelCore",
        "ReelTestSupport", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelReplayTests",
      dependencies: [
        "ReelReplay", "ReelPool", "ReelPlayback", "ReelFFmpeg", "ReelCore", "ReelTestSupport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelGatewayTests",
      dependencies: [
        "ReelGateway", "ReelTransport", "ReelTesting", "ReelManifest", "ReelCore", "ReelTestSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: testSettings
    ),
    .testTarget(
      name: "ReelCommandTests",
      dependencies: [
        "ReelCommand", "ReelReplay", "ReelPool", "ReelTesting", "ReelFFmpeg", "ReelCore", "ReelTestSupport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: testSettings
    ),
  ] + (hasArenas ? arenaTargets : [])
)
