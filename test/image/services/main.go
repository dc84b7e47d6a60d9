// The program services stands in for kube-proxy and the cluster's DNS on the real node, which has neither. It runs as a pod in the node's
// network, where the addresses of Services are local (test/cluster/node/init.sh). It listens at each address and port and connects to a
// ready pod. It answers for names like quartermaster-extender.quartermaster.svc.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// table is what the last look at the cluster found.
type table struct {
	mutex     sync.Mutex
	addresses map[string]net.IP   // name.namespace -> the Service's address
	backends  map[string][]string // address:port of a Service -> address:port of its ready pods
	listening map[string]bool
}

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, t := kubernetes.NewForConfigOrDie(config), &table{listening: map[string]bool{}}
	names, err := net.ListenPacket("udp4", "10.96.0.10:53")
	if err != nil {
		log.Fatal(err)
	}
	go t.answerNames(names)
	for ; ; time.Sleep(200 * time.Millisecond) {
		if err := t.look(client); err != nil {
			log.Print(err)
		}
	}
}

// look at the Services and their pods, and listen where a Service is new.
func (t *table) look(client *kubernetes.Clientset) error {
	services, err := client.CoreV1().Services("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	slices, err := client.DiscoveryV1().EndpointSlices("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.addresses, t.backends = map[string]net.IP{}, map[string][]string{}
	for _, service := range services.Items {
		address := net.ParseIP(service.Spec.ClusterIP).To4()
		if address == nil || service.Name == "kubernetes" {
			continue
		}
		t.addresses[service.Name+"."+service.Namespace] = address
		for _, port := range service.Spec.Ports {
			front := fmt.Sprintf("%s:%d", address, port.Port)
			t.backends[front] = nil
			for _, slice := range slices.Items {
				if slice.Namespace != service.Namespace || slice.Labels["kubernetes.io/service-name"] != service.Name {
					continue
				}
				for _, target := range slice.Ports {
					for _, endpoint := range slice.Endpoints {
						if *target.Name == port.Name && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
							t.backends[front] = append(t.backends[front], fmt.Sprintf("%s:%d", endpoint.Addresses[0], *target.Port))
						}
					}
				}
			}
			if !t.listening[front] {
				listener, err := net.Listen("tcp4", front)
				if err != nil {
					return err
				}
				t.listening[front] = true
				go t.forward(listener, front)
			}
		}
	}
	return nil
}

func (t *table) forward(listener net.Listener, front string) {
	for {
		caller, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer caller.Close()
			t.mutex.Lock()
			backends := t.backends[front]
			t.mutex.Unlock()
			if len(backends) == 0 {
				return
			}
			pod, err := net.DialTimeout("tcp4", backends[rand.Intn(len(backends))], time.Second)
			if err != nil {
				log.Print(err)
				return
			}
			go func() { io.Copy(pod, caller); pod.(*net.TCPConn).CloseWrite() }()
			io.Copy(caller, pod)
			pod.Close()
		}()
	}
}

func (t *table) answerNames(socket net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		size, caller, err := socket.ReadFrom(buffer)
		if err != nil {
			log.Fatal(err)
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:size]) != nil || len(message.Questions) != 1 {
			continue
		}
		question := message.Questions[0]
		message.Response, message.Authoritative, message.Additionals = true, true, nil
		name, found := strings.CutSuffix(strings.TrimSuffix(strings.TrimSuffix(question.Name.String(), "."), ".cluster.local"), ".svc")
		t.mutex.Lock()
		address := t.addresses[name]
		t.mutex.Unlock()
		switch {
		case !found || address == nil:
			message.RCode = dnsmessage.RCodeNameError
		case question.Type == dnsmessage.TypeA:
			message.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1},
				Body: &dnsmessage.AResource{A: [4]byte(address)}}}
		}
		if answer, err := message.Pack(); err == nil {
			socket.WriteTo(answer, caller)
		}
	}
}
