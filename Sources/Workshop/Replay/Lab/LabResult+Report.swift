internal import ReelCore
internal import ReelPlayback

extension LabResult {
  /// The figures of a walk.
  package init(run: LabRun, report: WalkReport) {
    let totals = report.totals
    var figures: [Figure: Double] = [:]
    if let waits = totals.firstFrame.all {
      figures[.firstFrameP50] = waits.p50.milliseconds
      figures[.firstFrameP95] = waits.p95.milliseconds
      figures[.firstFrameP99] = waits.p99.milliseconds
    }
    if let waits = totals.secondFrame.all {
      figures[.secondFrameP50] = waits.p50.milliseconds
      figures[.secondFrameP95] = waits.p95.milliseconds
      figures[.secondFrameP99] = waits.p99.milliseconds
      let sum = report.swipes.compactMap(\.countedSecondFrame).reduce(.zero, +)
      figures[.secondFrameMean] = (sum / waits.count).milliseconds
      figures[.secondFrameOver100ms] = waits.shareOver100ms
      figures[.secondFrameOver1s] = waits.shareOver1s
    }
    figures[.rebufferingRatio] = totals.rebufferingRatio
    figures[.stallCount] = Double(totals.stallCount)
    figures[.fetchedByteCount] = Double(totals.fetchedByteCount)
    figures[.wastedByteCount] = Double(totals.unshownByteCount)
    figures[.meanBitRate] = totals.meanBitRate
    figures[.rungSwitchCount] = Double(totals.rungSwitchCount)
    figures[.peakMemory] = totals.poolHighWaterByteCount.map(Double.init)
    figures[.decodedFrameCount] = Double(totals.decodedFrameCount)
    figures[.abandonedSwipeCount] = Double(totals.abandonedSwipeCount)
    figures[.failedItemCount] = Double(totals.failedItemCount)
    figures.merge(report.waitFigures) { $1 }
    self.init(run: run, figures: figures)
  }
}
