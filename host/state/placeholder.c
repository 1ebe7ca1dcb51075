/* Stands here until the layer has its first file. */
extern int ml_placeholder_state;
