// controller-runtime, with the measurements of opkit's controller: reconciles per second, and latency
// after a change. Prints one line of JSON.
//
//	controller-runtime controller dispatch|read|flight|burst|latency PORT OBJECTS WORKERS COUNT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// Duration of a reconcile that only waits.
	wait = 5 * time.Millisecond
	// Changes per second while the latency is measured.
	rate = 1_000
	// First resourceVersion that is a time in nanoseconds (after 2001).
	firstTime = 1_000_000_000_000_000_000
)

type bench struct {
	what    string
	objects int64
	client  client.Client

	reconciled, target atomic.Int64
	reached            chan struct{}

	mutex     sync.Mutex
	first     time.Time
	keys      []ctrl.Request
	latencies []int64
}

func (b *bench) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	switch b.what {
	case "read":
		var pod corev1.Pod
		if err := b.client.Get(ctx, b.hot(request).NamespacedName, &pod); err != nil {
			return ctrl.Result{}, err
		}
	case "flight":
		time.Sleep(wait)
	case "burst", "latency":
		var pod corev1.Pod
		if err := b.client.Get(ctx, request.NamespacedName, &pod); err != nil {
			return ctrl.Result{}, err
		}
		version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
		if err != nil {
			return ctrl.Result{}, err
		}
		if version > firstTime {
			latency := time.Now().UnixNano() - version
			b.mutex.Lock()
			b.latencies = append(b.latencies, latency)
			b.mutex.Unlock()
		}
	}
	number := b.reconciled.Add(1)
	if number <= b.objects {
		b.mutex.Lock()
		if len(b.keys) == 0 {
			b.first = time.Now()
		}
		b.keys = append(b.keys, request)
		b.mutex.Unlock()
	}
	if number == b.target.Load() {
		b.reached <- struct{}{}
	}
	return ctrl.Result{}, nil
}

var hot atomic.Pointer[ctrl.Request]

// Object that all reconciles read.
func (b *bench) hot(request ctrl.Request) *ctrl.Request {
	if found := hot.Load(); found != nil {
		return found
	}
	hot.CompareAndSwap(nil, &request)
	return hot.Load()
}

// Calls begin, and waits for this number of additional reconciles.
func (b *bench) waitFor(more int64, begin func()) {
	b.target.Store(b.reconciled.Load() + more)
	begin()
	select {
	case <-b.reached:
	case <-time.After(2 * time.Minute):
		check(fmt.Errorf("%d of %d", b.reconciled.Load(), b.target.Load()))
	}
}

func main() {
	if len(os.Args) != 7 || os.Args[1] != "controller" {
		check(fmt.Errorf("what to measure?"))
	}
	what, port, objects, workers, count := os.Args[2], os.Args[3], number(os.Args[4]), number(os.Args[5]), number(os.Args[6])
	order(port, "/reset")
	ctrl.SetLogger(logr.Discard())
	// The stand-in server has no discovery.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	manager, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:" + port, QPS: -1}, ctrl.Options{
		Metrics:        server.Options{BindAddress: "127.0.0.1:0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	check(err)
	b := &bench{what: what, objects: int64(objects), client: manager.GetClient(), reached: make(chan struct{}, 1)}
	rounds := make(chan []ctrl.Request)
	feed := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			for keys := range rounds {
				for _, key := range keys {
					queue.Add(key)
				}
			}
		}()
		return nil
	})
	check(ctrl.NewControllerManagedBy(manager).Named("bench").For(&corev1.Pod{}).WatchesRawSource(feed).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(b))
	b.waitFor(int64(objects), func() {
		go func() { check(manager.Start(context.Background())) }()
	})
	initial := float64(objects) / time.Since(b.first).Seconds()
	order(port, "/ready")
	if what == "latency" {
		b.waitFor(int64(count), func() { order(port, fmt.Sprintf("/go?events=%d&rate=%d", count, rate)) })
		b.mutex.Lock()
		slices.Sort(b.latencies)
		at := func(part int) float64 { return float64(b.latencies[(len(b.latencies)-1)*part/100]) / 1e3 }
		print(map[string]float64{"p50_us": at(50), "p99_us": at(99)})
		return
	}
	b.mutex.Lock()
	keys := slices.Clone(b.keys)
	b.mutex.Unlock()
	var elapsed time.Duration
	for range count {
		began := time.Now()
		b.waitFor(int64(objects), func() {
			if what == "burst" {
				order(port, fmt.Sprintf("/go?events=%d", objects))
			} else {
				rounds <- keys
			}
		})
		elapsed += time.Since(began)
	}
	print(map[string]float64{"per_second": float64(objects*count) / elapsed.Seconds(), "initial_per_second": initial})
}

func print(row map[string]float64) {
	line, err := json.Marshal(row)
	check(err)
	fmt.Println(string(line))
}

// Sends a command to the stand-in server.
func order(port, path string) {
	response, err := http.Get("http://127.0.0.1:" + port + path)
	check(err)
	response.Body.Close()
}

func number(text string) int {
	number, err := strconv.Atoi(text)
	check(err)
	return number
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
