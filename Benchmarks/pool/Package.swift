// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "swipes",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "Reel", path: "../..")],
  targets: [
    .executableTarget(
      name: "swipes",
      dependencies: [
        .product(name: "Reel", package: "Reel"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ])
  ]
)
