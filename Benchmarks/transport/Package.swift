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
  dependencies: [.package(name: "Reel", path: "../..")],
  targets: [
    .systemLibrary(
      name: "CCurl", path: "Sources/CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .target(
      name: "Measuring", dependencies: [.product(name: "ReelCore", package: "Reel")], swiftSettings: settings),
    .executableTarget(
      name: "transport-reel",
      dependencies: [
        "Measuring", .product(name: "ReelCore", package: "Reel"),
        .product(name: "ReelTransport", package: "Reel"),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "transport-curl",
      dependencies: ["Measuring", "CCurl", .product(name: "ReelCore", package: "Reel")],
      swiftSettings: settings),
  ]
)
