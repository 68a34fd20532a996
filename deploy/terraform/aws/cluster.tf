locals {
  # EMR asks for this tag on what its service policy may touch.
  cluster_tags = merge(local.tags, { "for-use-with-amazon-emr-managed-policies" = "true" })
  glue_client  = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
}

resource "aws_ec2_tag" "subnet" {
  count = var.create_cluster && var.tag_subnet ? 1 : 0

  resource_id = var.subnet_id
  key         = "for-use-with-amazon-emr-managed-policies"
  value       = "true"
}

resource "aws_emr_security_configuration" "lake" {
  count = var.create_cluster ? 1 : 0

  name = var.name
  configuration = jsonencode({
    EncryptionConfiguration = {
      EnableInTransitEncryption = false
      EnableAtRestEncryption    = true
      AtRestEncryptionConfiguration = merge(
        { S3EncryptionConfiguration = local.key_arn == null ? { EncryptionMode = "SSE-S3" } : { EncryptionMode = "SSE-KMS", AwsKmsKey = local.key_arn } },
        local.key_arn == null ? {} : {
          LocalDiskEncryptionConfiguration = {
            EncryptionKeyProviderType = "AwsKms"
            AwsKmsKey                 = local.key_arn
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
  count = var.create_cluster ? 1 : 0

  bucket  = var.create_bucket ? aws_s3_bucket.lake[0].id : var.bucket
  key     = "${local.root}segment-data/packages/bootstrap.sh"
  content = file("${path.module}/bootstrap.sh")
  tags    = local.tags
}

resource "aws_emr_cluster" "lake" {
  # checkov:skip=CKV2_AWS_7:EMR makes the security groups, which let nodes reach each other only
  count = var.create_cluster ? 1 : 0

  name                              = var.name
  release_label                     = var.release_label
  applications                      = ["Hadoop", "Spark"]
  service_role                      = aws_iam_role.service[0].arn
  security_configuration            = aws_emr_security_configuration.lake[0].name
  log_uri                           = "s3://${var.bucket}/${local.root}logs/"
  keep_job_flow_alive_when_no_steps = true
  termination_protection            = var.idle_timeout == 0
  step_concurrency_level            = 4
  visible_to_all_users              = true
  tags                              = local.cluster_tags

  ec2_attributes {
    subnet_id        = var.subnet_id
    instance_profile = aws_iam_instance_profile.nodes[0].arn
  }

  master_instance_group {
    instance_type = var.primary_instance_type
  }

  core_instance_group {
    instance_type  = var.core_instance_type
    instance_count = var.minimum_units

    ebs_config {
      size                 = 64
      type                 = "gp3"
      volumes_per_instance = 1
    }
  }

  bootstrap_action {
    name = "python"
    path = "s3://${aws_s3_object.bootstrap[0].bucket}/${aws_s3_object.bootstrap[0].key}"
  }

  dynamic "auto_termination_policy" {
    for_each = var.idle_timeout == 0 ? [] : [var.idle_timeout]

    content {
      idle_timeout = auto_termination_policy.value
    }
  }

  configurations_json = jsonencode([
    {
      Classification = "spark-hive-site"
      Properties     = { "hive.metastore.client.factory.class" = local.glue_client }
    },
    {
      Classification = "spark-defaults"
      Properties     = { "spark.dynamicAllocation.enabled" = "true" }
    },
  ])

  lifecycle {
    # Managed scaling changes it.
    ignore_changes = [core_instance_group[0].instance_count]

    precondition {
      condition     = var.subnet_id != null
      error_message = "A cluster needs a subnet: set subnet_id, or create_cluster = false."
    }
  }

  depends_on = [
    aws_ec2_tag.subnet,
    aws_iam_role_policy.service_pass,
    aws_iam_role_policy_attachment.nodes_lake,
    aws_iam_role_policy_attachment.service,
  ]
}

resource "aws_emr_managed_scaling_policy" "lake" {
  count = var.create_cluster ? 1 : 0

  cluster_id = aws_emr_cluster.lake[0].id

  compute_limits {
    unit_type                       = "Instances"
    minimum_capacity_units          = var.minimum_units
    maximum_capacity_units          = var.maximum_units
    maximum_ondemand_capacity_units = var.maximum_units
    maximum_core_capacity_units     = var.minimum_units
  }
}
