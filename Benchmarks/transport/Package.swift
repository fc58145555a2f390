// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
  name: "transport",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Reel", path: "../.."),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CCurl", path: "Sources/CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .target(
      name: "Measuring", dependencies: [.product(name: "Reel", package: "Reel")], swiftSettings: settings),
    .executableTarget(
      name: "transport-reel",
      dependencies: [
        "Measuring", .product(name: "Reel", package: "Reel"),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "transport-curl",
      dependencies: [
        "Measuring", "CCurl", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Reel", package: "Reel"),
      ],
      swiftSettings: settings),
  ]
)
