// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "SwipeMeter",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Reel", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "SwipeMeter",
      dependencies: [.product(name: "Reel", package: "Reel")],
      path: "Sources")
  ],
  swiftLanguageModes: [.v6]
)
