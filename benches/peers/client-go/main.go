// Client-go's shared informer, with the measurements of the cache: first sync, memory, events per
// second, cost of reading one object. Prints one line of JSON.
//
//	client-go stand-in pods|robots PORT OBJECTS EVENTS [cleared]
//	client-go real json|protobuf        (the server of KUBECONFIG)
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "what to measure?")
		os.Exit(2)
	}
	var row map[string]float64
	switch os.Args[1] {
	case "stand-in":
		row = standIn(os.Args[2], os.Args[3], number(os.Args[4]), number(os.Args[5]), len(os.Args) > 6)
	case "real":
		row = real(os.Args[2])
	}
	line, err := json.Marshal(row)
	check(err)
	fmt.Println(string(line))
}

func standIn(kind, port string, objects, events int, cleared bool) map[string]float64 {
	config := &rest.Config{Host: "http://127.0.0.1:" + port, QPS: -1}
	var informer cache.SharedIndexInformer
	if kind == "pods" {
		client, err := kubernetes.NewForConfig(config)
		check(err)
		informer = informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	} else {
		client, err := dynamic.NewForConfig(config)
		check(err)
		robots := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "robots"}
		informer = dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(robots).Informer()
	}
	if cleared {
		check(informer.SetTransform(clear))
	}
	var seen atomic.Int64
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, _ any) { seen.Add(1) },
	})
	check(err)
	row := sync(informer, objects)
	order(port, "/ready")
	began := time.Now()
	order(port, fmt.Sprintf("/go?events=%d", events))
	for seen.Load() < int64(events) {
		time.Sleep(2 * time.Millisecond)
	}
	row["events_per_second"] = float64(events) / time.Since(began).Seconds()
	if kind == "pods" {
		row["read_us"] = deepCopies(informer)
	}
	return row
}

func real(encoding string) map[string]float64 {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.QPS = -1
	if encoding == "protobuf" {
		config.ContentType = protobuf
		config.AcceptContentTypes = protobuf + ",application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	check(err)
	return sync(informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), 0)
}

// Runs the informer until it has all objects.
func sync(informer cache.SharedIndexInformer, objects int) map[string]float64 {
	base := status("VmRSS:")
	began := time.Now()
	go informer.Run(context.Background().Done())
	for !informer.HasSynced() {
		time.Sleep(2 * time.Millisecond)
	}
	seconds := time.Since(began).Seconds()
	peak := status("VmHWM:")
	count := len(informer.GetStore().ListKeys())
	if objects > 0 && count != objects {
		fmt.Fprintf(os.Stderr, "%d objects instead of %d\n", count, objects)
		os.Exit(1)
	}
	time.Sleep(time.Second)
	asIs := status("VmRSS:")
	// As favourable as possible: no operator collects garbage like this.
	runtime.GC()
	debug.FreeOSMemory()
	steady := status("VmRSS:")
	return map[string]float64{
		"objects":          float64(count),
		"sync_seconds":     seconds,
		"peak_bytes":       peak,
		"steady_bytes":     steady,
		"bytes_per_object": (steady - base) / float64(max(count, 1)),
		"as_is_per_object": (asIs - base) / float64(max(count, 1)),
	}
}

// Sends a command to the stand-in server.
func order(port, path string) {
	response, err := http.Get("http://127.0.0.1:" + port + path)
	check(err)
	response.Body.Close()
}

// Measures the cost of reading an object and copying it, which a reader that changes it must do.
func deepCopies(informer cache.SharedIndexInformer) float64 {
	objects := informer.GetStore().List()
	const reads = 20_000
	began := time.Now()
	for n := range reads {
		runtime.KeepAlive(objects[n%len(objects)].(*corev1.Pod).DeepCopy())
	}
	return time.Since(began).Seconds() * 1e6 / reads
}

func clear(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		object.ManagedFields = nil
	case *unstructured.Unstructured:
		object.SetManagedFields(nil)
	}
	return object, nil
}

// Returns a field of /proc/self/status, in bytes.
func status(field string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	check(err)
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, field); found {
			return float64(number(strings.Fields(rest)[0])) * 1024
		}
	}
	return 0
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
