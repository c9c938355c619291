// Package metrics holds the Prometheus metrics of the server.
package metrics

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace begins the name of every metric.
const namespace = "hermes_mobile"

// Set is every metric of one server. Labels have a bounded number of values: codes and kinds, never ids.
type Set struct {
	registry *prometheus.Registry
	storage  atomic.Pointer[func() (used, limit int64)]

	Connections prometheus.Gauge
	Hellos      *prometheus.CounterVec // outcome: ready or an error code
	Closes      *prometheus.CounterVec // code
	Accepted    *prometheus.CounterVec // kind
	Duplicates  prometheus.Counter
	Refused     *prometheus.CounterVec // code
	Finals      prometheus.Counter
	Interims    prometheus.Counter
	FilesOut    prometheus.Counter
	Cards       *prometheus.CounterVec // outcome: asked, answered, expired, closed
	Deliveries  *prometheus.CounterVec // outcome: live, queued, offline
	Turns       *prometheus.CounterVec // outcome: done, interrupted
	Pushes      *prometheus.CounterVec // outcome: sent, gone, refused, …
	StoreErrors prometheus.Counter
	NoSpace     *prometheus.CounterVec // reason: total, disk, share, inbox
	FrontLogins *prometheus.CounterVec // outcome: ok, wrong, throttled, reused
	FrontCalls  *prometheus.CounterVec // status: 2xx, 4xx, …
	FrontTurns  prometheus.Gauge
	Gateway     *prometheus.CounterVec // event: the Count constants of agent/relay

	Strangers        prometheus.Gauge
	StrangerBytes    prometheus.Gauge
	StrangersDropped *prometheus.CounterVec // reason: total, network, memory, hello_size, hello_time
}

// New returns a set with its own registry.
func New(version string) *Set {
	s := &Set{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		s.registry.MustRegister(c)
		return c
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
		s.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
		s.registry.MustRegister(g)
		return g
	}
	s.Connections = gauge("device_connections", "Open device connections.")
	s.Hellos = vec("hellos_total", "Answers to hello.", "outcome")
	s.Closes = vec("device_closes_total", "Device connections that the server ended, by close code.", "code")
	s.Accepted = vec("accepted_total", "Messages accepted from devices.", "kind")
	s.Duplicates = counter("duplicates_total", "Messages that the server already had.")
	s.Refused = vec("refused_total", "Frames answered with an error.", "code")
	s.Finals = counter("replies_total", "Messages stored for devices.")
	s.Interims = counter("stream_frames_total", "Edits of streamed replies sent to devices.")
	s.FilesOut = counter("files_out_total", "Files stored for devices.")
	s.Cards = vec("cards_total", "Question cards.", "outcome")
	s.Deliveries = vec("deliveries_total", "Deliveries.", "outcome")
	s.Turns = vec("turns_total", "Turns that ended.", "outcome")
	s.Pushes = vec("pushes_total", "Notifications for devices that are offline.", "outcome")
	s.StoreErrors = counter("store_errors_total", "Failed reads and writes of the store.")
	stored := func(name, help string, pick func(used, limit int64) int64) {
		s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, func() float64 {
			if of := s.storage.Load(); of != nil {
				return float64(pick((*of)()))
			}
			return 0
		}))
	}
	stored("data_bytes", "Bytes stored below the data folder: files, unfinished uploads and the database.", func(used, _ int64) int64 { return used })
	stored("data_limit_bytes", "Limit of these bytes (MOBILE_MAX_DATA).", func(_, limit int64) int64 { return limit })
	s.NoSpace = vec("no_space_total", "Files and messages refused because a storage limit was reached.", "reason")
	s.FrontLogins = vec("front_logins_total", "Logins at the API proxy.", "outcome")
	s.FrontCalls = vec("front_requests_total", "Requests of users at the API proxy, by the class of the response.", "status")
	s.FrontTurns = gauge("front_turns", "Turns and event streams that go through the API proxy now.")
	s.Gateway = vec("gateway_events_total", "Events on the connections of Hermes gateways.", "event")
	s.Strangers = gauge("strangers", "Open connections that have not authenticated.")
	s.StrangerBytes = gauge("stranger_bytes", "Memory of connections that have not authenticated.")
	s.StrangersDropped = vec("strangers_dropped_total", "Connections closed by a limit before they authenticated.", "reason")
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", Help: "The version of the server.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	s.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Storage sets the function that returns how many bytes are stored, and how many may be.
func (s *Set) Storage(of func() (used, limit int64)) { s.storage.Store(&of) }

// Totals returns each of our metrics as one number, by its name without the prefix. A metric with a label
// is the sum over the values of the label.
func (s *Set) Totals() (map[string]float64, error) {
	families, err := s.registry.Gather()
	totals := map[string]float64{}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), namespace+"_")
		if !ours {
			continue
		}
		for _, m := range f.GetMetric() {
			totals[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is 0
		}
	}
	return totals, err
}

// Handler returns a handler that serves the metrics.
func (s *Set) Handler() http.Handler { return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}) }
