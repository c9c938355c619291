// Yardstick is a minimal server for phones and a gateway, written to be measured beside the real one and for nothing
// else. It speaks as much of the protocol as the load of scripts/bench.sh needs, with one of three WebSocket libraries. It
// keeps nothing on a disk, asks nobody for rights and sends nothing twice.
//
//	yardstick -addr 127.0.0.1:9000 -library gorilla|coder|centrifuge
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"
)

// library is one WebSocket library in the server: what it does with a request for a connection. open is called with the
// new connection and says who reads from it.
type library interface {
	devices(open opener) http.Handler
	gateways(open opener) http.Handler
	all(peers []peer, p []byte) // sends every peer the same
}

func main() {
	addr := flag.String("addr", "", "where to listen")
	name := flag.String("library", "gorilla", "gorilla, coder or centrifuge")
	flag.Parse()
	libraries := map[string]library{"gorilla": gorilla{}, "coder": coder{}, "centrifuge": &centrifugal{}}
	lib := libraries[*name]
	if lib == nil {
		log.Fatalf("there is no library %q", *name)
	}
	y := &yard{devices: map[string]*device{}, all: lib.all}
	mux := http.NewServeMux()
	mux.Handle("/ws", lib.devices(y.device))
	mux.Handle("/relay", lib.gateways(y.relay))
	mux.HandleFunc("/live", live)
	if _, own := lib.(*centrifugal); !own {
		go y.ping()
	}
	s := &http.Server{Addr: *addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(s.ListenAndServe())
}

// live answers how many bytes of heap and stacks are in use after a collection.
func live(w http.ResponseWriter, _ *http.Request) {
	for range 3 { // each halves stacks that are larger than they need to be, and the second empties the pools
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprint(w, m.HeapInuse+m.StackInuse)
}
