output "cluster_id" {
  description = "The setting `emr.cluster_id`."
  value       = aws_emr_cluster.lake.id
}

output "machine" {
  description = "Processor of the nodes: the setting `emr.machine`."
  value       = can(regex("^[a-z]+[0-9]+[a-z]*g[a-z]*\\.", var.core_instance_type)) ? "aarch64" : "x86_64"
}

output "most_cores" {
  description = "Processor cores of core and task nodes at most, if they have four each: for the setting `spark.conf`."
  value       = 4 * (var.scaling == "managed" ? var.maximum_units : var.core_instance_max_count + var.task_instance_max_count)
}
