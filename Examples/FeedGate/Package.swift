// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "FeedGate",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Reel", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "FeedGate",
      dependencies: [
        .product(name: "Reel", package: "Reel"),
        .product(name: "ReelLab", package: "Reel"),
      ],
      path: "Sources")
  ],
  swiftLanguageModes: [.v6]
)
