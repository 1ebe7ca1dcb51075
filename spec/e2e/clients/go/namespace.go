package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newNamespace(ctx context.Context, c *clients) (string, error) {
	namespace, err := c.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return namespace.Name, nil
}

func forget(c *clients, namespace string) {
	_ = c.typed.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
}
