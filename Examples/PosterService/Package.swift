// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "PosterService",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Reel", path: "../.."),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "PosterService",
      dependencies: [
        .product(name: "Reel", package: "Reel"),
        .product(name: "ReelStills", package: "Reel"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: "Sources")
  ],
  swiftLanguageModes: [.v6]
)
