locals {
  root = var.prefix == "" ? "" : "${var.prefix}/"

  managed = "for-use-with-amazon-emr-managed-policies"
  # EMR's own policy asks for the second on all that it may touch.
  tags = merge(var.tags, { (var.tag_key) = var.tag_value, (local.managed) = "true" })

  glue = { "hive.metastore.client.factory.class" = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory" }
}

resource "aws_ec2_tag" "subnet" {
  count = var.tag_subnet ? 1 : 0

  resource_id = var.subnet_id
  key         = local.managed
  value       = "true"
}

resource "aws_emr_security_configuration" "lake" {
  name = var.name
  configuration = jsonencode({
    EncryptionConfiguration = {
      EnableInTransitEncryption = false
      EnableAtRestEncryption    = true
      AtRestEncryptionConfiguration = merge(
        { S3EncryptionConfiguration = var.kms_key_arn == null ? { EncryptionMode = "SSE-S3" } : { EncryptionMode = "SSE-KMS", AwsKmsKey = var.kms_key_arn } },
        var.kms_key_arn == null ? {} : {
          LocalDiskEncryptionConfiguration = {
            EncryptionKeyProviderType = "AwsKms"
            AwsKmsKey                 = var.kms_key_arn
            EnableEbsEncryption       = true
          }
        },
      )
    }
    InstanceMetadataServiceConfiguration = {
      MinimumInstanceMetadataServiceVersion = 2
      HttpPutResponseHopLimit               = 1
    }
  })
}

# What the nodes lack: a Python that the package's libraries are built for.
resource "aws_s3_object" "bootstrap" {
  bucket  = var.bucket
  key     = "${local.root}segment-data/bootstrap/bootstrap.sh"
  content = file("${path.module}/bootstrap.sh")
  tags    = var.tags
}

resource "aws_emr_cluster" "lake" {
  # checkov:skip=CKV2_AWS_7:EMR makes the security groups, which let nodes reach each other only, unless others are given
  name                              = var.name
  release_label                     = var.release_label
  applications                      = ["Hadoop", "Hive", "Spark"]
  service_role                      = var.service_role_arn
  autoscaling_role                  = var.autoscaling_role_arn
  security_configuration            = aws_emr_security_configuration.lake.name
  log_uri                           = "s3://${var.bucket}/${local.root}logs/"
  keep_job_flow_alive_when_no_steps = true
  termination_protection            = var.idle_timeout == 0
  step_concurrency_level            = 4
  visible_to_all_users              = true
  tags                              = local.tags

  ec2_attributes {
    subnet_id                         = var.subnet_id
    instance_profile                  = var.instance_profile_arn
    key_name                          = var.key_name
    emr_managed_master_security_group = var.master_security_group
    emr_managed_slave_security_group  = var.slave_security_group
    service_access_security_group     = var.service_access_security_group
  }

  master_instance_group {
    instance_type = var.master_instance_type
  }

  core_instance_group {
    instance_type      = var.core_instance_type
    instance_count     = var.core_instance_count
    autoscaling_policy = local.core_rules

    ebs_config {
      size                 = 64
      type                 = "gp3"
      volumes_per_instance = 1
    }
  }

  bootstrap_action {
    name = "python"
    path = "s3://${aws_s3_object.bootstrap.bucket}/${aws_s3_object.bootstrap.key}"
  }

  dynamic "auto_termination_policy" {
    for_each = var.idle_timeout == 0 ? [] : [var.idle_timeout]

    content {
      idle_timeout = auto_termination_policy.value
    }
  }

  configurations_json = jsonencode([
    { Classification = "hive-site", Properties = local.glue },
    { Classification = "spark-hive-site", Properties = local.glue },
    { Classification = "spark-defaults", Properties = { "spark.dynamicAllocation.enabled" = "true" } },
  ])

  lifecycle {
    # Scaling changes it.
    ignore_changes = [core_instance_group[0].instance_count]

    precondition {
      condition     = var.scaling == "managed" || var.autoscaling_role_arn != null
      error_message = "Rules need a role that scales by them: set autoscaling_role_arn."
    }
  }

  depends_on = [aws_ec2_tag.subnet]
}

resource "aws_emr_instance_group" "task" {
  name               = "task"
  cluster_id         = aws_emr_cluster.lake.id
  instance_type      = var.task_instance_type
  instance_count     = var.task_instance_count
  autoscaling_policy = local.task_rules

  ebs_config {
    size                 = 64
    type                 = "gp3"
    volumes_per_instance = 1
  }

  lifecycle {
    ignore_changes = [instance_count]
  }
}
