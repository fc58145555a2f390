// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "HLSGateway",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Reel", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "HLSGateway",
      dependencies: [.product(name: "ReelGateway", package: "Reel")],
      path: "Sources")
  ],
  swiftLanguageModes: [.v6]
)
