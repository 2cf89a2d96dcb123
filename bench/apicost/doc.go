// Package apicost estimates what a cluster of daemons that watch the
// EndpointSlices of the cluster's DNS costs the Kubernetes API server: when a
// deployment of that DNS rolls, when the daemons themselves start, and when
// nothing happens. It is a simulation on paper: it sends nothing.
//
// What it assumes:
//
//   - Every daemon has one watch, on the slices of one Service. The API server
//     sends each change of a slice as the whole slice to every watch.
//   - A slice holds up to MaxPerSlice endpoints and is as full as can be. Its
//     size is measured, on slices made here with the fields that the controller
//     writes, as JSON. Protobuf, which carries the same strings with fewer
//     quotes and field names, is taken as 0.58 of that, the share that was
//     measured on such slices.
//   - A pod that is replaced writes its slice EventsPerPod times: draining,
//     removed, new, ready, and every other time not serving. The endpoints
//     controller does not merge changes of different pods.
//   - A roll replaces Surge pods at a time, each taking PodSeconds.
//   - A daemon that starts lists all slices once, then watches. All of them
//     start within StartWindow (a roll of the daemons, or an API server that
//     came back), plus a pause that each draws evenly below Jitter.
//   - A list costs the API server its bytes and ListMicros of CPU time; an event
//     EventMicros for each watch. A watch holds WatchBytes of memory. These are
//     estimates of the right size, not measurements.
//   - Bookmarks, one a minute and watch, are counted as 250 octets.
//
// Nothing here knows of other watchers: kube-proxy causes the same traffic for
// the same Service on every node.
package apicost
