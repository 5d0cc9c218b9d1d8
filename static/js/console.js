// What every page starts: the live connection, and whatever this page has of the rest.

import { watchChecks } from "./check.js";
import { watchDialogs } from "./dialog.js";
import { watchDrawer } from "./drawer.js";
import { guardLeaving, watchForm } from "./form.js";
import { watchJobPicks } from "./job-picks.js";
import { listenToKeys } from "./keys.js";
import { live } from "./live.js";
import { keepRailGroups, showPresentTabs, watchCopyButtons, watchMenus } from "./menus.js";
import { watchPickers } from "./picker.js";
import { showConnection } from "./pill.js";
import { unfoldForPaper } from "./printing.js";
import { startQueueTree } from "./queue-table.js";
import { followParts } from "./refresh.js";
import { followCluster } from "./site.js";
import { keepTimes } from "./times.js";
import { showFigures } from "./tooltip.js";

showConnection(live);
startQueueTree(live);
followParts();
followCluster();

keepTimes();
listenToKeys();
showFigures();
unfoldForPaper();
watchMenus();
watchCopyButtons();
showPresentTabs();
keepRailGroups();

watchDialogs();
watchDrawer();
watchChecks();
watchForm(document.getElementById("queue-form"));
guardLeaving();
watchPickers();
watchJobPicks();

const longList = document.querySelector("[data-long-list]");
if (longList) {
  import("./long-list.js").then(({ startLongList }) => startLongList(longList));
}

// Charts need a library of their own, so only pages with a chart load it.
if (document.getElementById("history")) {
  import("./history.js").then(({ startHistory }) => startHistory());
}
if (document.getElementById("loan-history")) {
  import("./loan-history.js").then(({ startLoanHistory }) => startLoanHistory());
}
if (document.querySelector("[data-stacked]")) {
  import("./stacked.js").then(({ startStacked }) => startStacked());
}
if (document.getElementById("queue-comparison")) {
  import("./queue-comparison.js").then(({ startComparison }) => startComparison());
}
if (document.querySelector("[data-durations]")) {
  import("./durations.js").then(({ startDurations }) => startDurations());
}
const clusterTimeline = document.getElementById("cluster-timeline");
if (clusterTimeline) {
  import("./cluster-timeline.js").then(({ startClusterTimeline }) =>
    startClusterTimeline(clusterTimeline),
  );
}
if (document.querySelector("[data-node-map]")) {
  import("./node-map.js").then(({ watchNodeMap }) => watchNodeMap());
}
const logTools = document.querySelector(".log-tools");
if (logTools) {
  import("./pod-log.js").then(({ startPodLog }) => startPodLog(logTools));
}
