package main

import (
	"context"
	"fmt"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// nodeName is the node that lasting pods are bound to. There is no Node object:
// nothing that runs here asks for one.
const nodeName = "fake-node"

// kubelet plays scheduler and kubelet for every pod in the cluster. It starts no
// process: it writes the statuses that a pod would go through.
type kubelet struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[string]
	runFor time.Duration

	mu      sync.Mutex
	records map[types.UID]record
}

// record is what the fake kubelet knows of a pod beyond its cached copy.
type record struct {
	started time.Time // when it was set running; the status says it in whole seconds only
	written string    // the resourceVersion that our last write led to
}

func newKubeletCommand() *cobra.Command {
	var kubeconfig string
	var workers int
	var runFor time.Duration
	cmd := &cobra.Command{
		Use:   "kubelet",
		Short: "take every pod through its phases without running it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runKubelet(cmd.Context(), kubeconfig, workers, runFor)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file that says how to reach the API server")
	cmd.Flags().IntVar(&workers, "workers", 32, "pods worked on at a time")
	cmd.Flags().DurationVar(&runFor, "run-for", 0, "how long a pod that ends stays Running")
	_ = cmd.MarkFlagRequired("kubeconfig")
	return cmd
}

func runKubelet(ctx context.Context, kubeconfig string, workers int, runFor time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit
	config.UserAgent = "fake-kubelet"
	config.ContentType = runtime.ContentTypeProtobuf // half the API server's work for a JSON one
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}

	factory := informers.NewSharedInformerFactory(client, 0)
	k := &kubelet{
		client:  client,
		pods:    factory.Core().V1().Pods().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		runFor:  runFor,
		records: map[types.UID]record{},
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(k.handlers()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	for range workers {
		go func() {
			for k.next(ctx) {
			}
		}()
	}
	<-ctx.Done()
	k.queue.ShutDown()
	return nil
}

func (k *kubelet) handlers() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			k.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: func(object any) {
			if lost, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = lost.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.records, pod.UID)
			}
		},
	}
}

// next works on one pod of the queue, and says whether there can be more.
func (k *kubelet) next(ctx context.Context) bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)

	err := k.sync(ctx, key)
	// A conflict or a missing pod means that our copy is old: the event that
	// says so is on its way, and will queue the pod again.
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		k.queue.Forget(key)
		return true
	}
	if ctx.Err() == nil {
		klog.ErrorS(err, "pod failed to sync, trying again", "pod", key)
		k.queue.AddRateLimited(key)
	}
	return true
}

// sync moves a pod as many phases on as it can go now.
func (k *kubelet) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	pod, err := k.pods.Pods(namespace).Get(name)
	if err != nil {
		return err
	}
	if k.isStale(pod) {
		return nil
	}
	for pod != nil && err == nil {
		pod, err = k.step(ctx, key, pod)
	}
	return err
}

// step does the one thing that a pod needs next. It returns the pod as it is
// then, or nil where there is nothing more to do for now.
func (k *kubelet) step(ctx context.Context, key string, pod *corev1.Pod) (*corev1.Pod, error) {
	plan := planFor(pod, k.runFor)
	switch {
	case pod.DeletionTimestamp != nil:
		return nil, k.finishDeletion(ctx, pod)

	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil, nil

	case pod.Status.Phase != corev1.PodRunning && !plan.ends && pod.Spec.NodeName == "":
		return nil, k.bind(ctx, pod) // the update that this makes queues the pod again

	case pod.Status.Phase != corev1.PodRunning:
		return k.writeStatus(ctx, pod, runningStatus(pod, podIP()))

	case plan.ends:
		if wait := time.Until(k.startedAt(pod).Add(plan.after)); wait > 0 {
			k.queue.AddAfter(key, wait)
			return nil, nil
		}
		return k.writeStatus(ctx, pod, endedStatus(pod, plan.exitCode))
	}
	return nil, nil
}

// bind gives a pod that lasts a node. The API server deletes a pod without one
// on the spot; with one it sets a deletionTimestamp and waits for the kubelet,
// which is what users of lasting pods have to cope with. Pods that end by
// themselves go without: it would cost each a write.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	return k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
	}, metav1.CreateOptions{})
}

// finishDeletion tells the API server that a pod which is to go has stopped.
func (k *kubelet) finishDeletion(ctx context.Context, pod *corev1.Pod) error {
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return nil // told already: it is a finalizer that keeps the pod
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

// writeStatus replaces the status under the pod's resourceVersion: an old copy
// can never take a pod back to an earlier phase.
func (k *kubelet) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	changed := pod.DeepCopy()
	changed.Status = status
	written, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing phase %s: %w", status.Phase, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.records[pod.UID]
	if known.started.IsZero() {
		known.started = time.Now()
	}
	known.written = written.ResourceVersion
	k.records[pod.UID] = known
	return written, nil
}

// startedAt is when the pod was set running; of one that an earlier kubelet
// process started, when this process first asked.
func (k *kubelet) startedAt(pod *corev1.Pod) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.records[pod.UID]
	if known.started.IsZero() {
		known.started = time.Now()
		k.records[pod.UID] = known
	}
	return known.started
}

// isStale tells whether the cached pod is older than what we wrote last.
func (k *kubelet) isStale(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found := k.records[pod.UID]
	if !found || known.written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, known.written)
	return err == nil && order < 0
}
